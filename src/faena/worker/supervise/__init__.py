"""Worker processes and the parent that keeps them running."""
