"""Helpers for other frameworks; each module is imported by those who use that framework."""
