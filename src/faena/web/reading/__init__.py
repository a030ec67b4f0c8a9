"""What the API tells: each reading is declared once, with the view that it answers."""
