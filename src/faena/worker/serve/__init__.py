"""What a worker answers over HTTP: whether it is healthy and ready, and its metrics."""
