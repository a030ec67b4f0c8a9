"""The HTTP API: what organisations send in, what providers tell, and how the system is."""
