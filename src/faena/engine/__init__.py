"""The only package that speaks to Valkey or Redis."""
