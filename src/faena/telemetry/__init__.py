"""What a running system tells of itself."""
