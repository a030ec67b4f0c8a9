"""Sends new jobs to the broker, and gives producers receipts and handles."""
