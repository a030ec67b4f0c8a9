"""From enqueue() to the broker, and what the producer gets back."""
