"""Waiting for work, claiming it and settling it."""
