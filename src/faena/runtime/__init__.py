"""An app's connections, one for each event loop, and its door for synchronous code."""
