"""Script calls by capability, each one call to one shard."""
