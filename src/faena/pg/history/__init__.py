"""The history of jobs in PostgreSQL: what has ended, beyond what the broker keeps."""
