"""From a decorated function to a handler."""
