"""Retention and archives: old rows leave the database, and what leaves can be read back.

    pg.retain("jobs", keep="2y", tenant="organization_id", then=Archive())

    store       where objects are: a directory, or a bucket that speaks S3
    manifest    what an object holds; a manifest is stored beside each object
    content     the lines of an object, compressed and read back with their checksum
    catalogue   `faena.archives`: one row for each object, with its state
    protection  what must not be deleted, by archivers and by erasures
    proof       objects are read again when their rows are about to end

A row is in its table or in an archive that was read back and compared, at every moment; see
docs/retention.md.
"""
