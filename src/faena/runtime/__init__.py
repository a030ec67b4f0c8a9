"""An app's connections, one for each event loop, and its portal for synchronous code."""
