"""Looking at queues and brokers without changing them."""
