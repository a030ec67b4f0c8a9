"""What can be changed: each operation is declared once, for forms of pages and calls of the API."""
