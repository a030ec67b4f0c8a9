"""Schedules: when they are due, what they fire, how they are changed."""
