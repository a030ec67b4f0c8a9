"""Turns a plain table into a partitioned one while programs read and write it: docs/partitions.md."""
