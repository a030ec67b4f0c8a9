"""The pages: each reads what it shows, works out what to say, and names a template."""
