"""Metrics for Prometheus: declared once, read when a page is asked for."""
