"""The dashboard and the admin API: one ASGI application beside a program's app."""
