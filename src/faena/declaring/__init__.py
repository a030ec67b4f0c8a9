"""Turns decorated functions into tasks and handlers."""
