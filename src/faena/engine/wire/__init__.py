"""Connections to the broker: sockets, topology and retries."""
