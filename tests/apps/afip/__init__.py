"""AFIP: its client, and the stand-in that it is tested against."""
