"""Small programs that use the public API; each runs on its own."""
