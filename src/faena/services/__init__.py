"""Upkeep beside the worker, one charter each."""
