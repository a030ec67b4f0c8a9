"""Tenants of a queue: their lanes, their settings, their shares of its service."""
