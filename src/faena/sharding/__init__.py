"""A queue in several shards: which lane is where, and how lanes are moved."""
