"""Retrieval: a tenant gets its archived rows back as a file, by a link that expires.

    retrievals = pg.retrieval(secrets=[…])
    view = await retrievals.retrieve("jobs", tenant="org-7", start=date(2023, 1, 1), end=…)

    option       what a program says about it
    period       from and to as instants, and which lines are between them
    link         signed links: whose, to what, until when
    record       `faena.retrievals`: one row for each request
    collection   the job: reads the tenant's objects, writes one file
    retrievals   start a request, look at it, open its file, remove old files

See docs/archives.md.
"""
