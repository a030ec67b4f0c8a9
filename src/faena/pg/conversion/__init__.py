"""Turns a plain table into a partitioned one while programs use it: see docs/partitions.md."""
