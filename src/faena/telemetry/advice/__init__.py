"""How many slots a queue needs, what would happen with others, and a signal for autoscalers."""
