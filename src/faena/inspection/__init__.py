"""Reading queues and brokers without changing anything."""
