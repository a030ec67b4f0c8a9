"""Log lines: which job they are about, and how they are written."""
