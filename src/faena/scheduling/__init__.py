"""Schedules: compute when they are due, fire their jobs, change them."""
