"""Script calls by capability; each is one call to one shard."""
