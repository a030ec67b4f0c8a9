"""Sockets, topology and retries: the way to the broker and back."""
