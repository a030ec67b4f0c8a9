"""Range partitions by time: declared, created ahead, detached, attached again and watched.

    pg.partitioned("locations", by="recorded_at", every="day", tenant="organization_id")

Nothing here drops a table, and nothing here locks ingest out: see docs/partitions.md.
"""
