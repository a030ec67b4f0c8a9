"""Measures faena beside its peers on one Valkey server in one run; see README.md for the method."""
