"""Erasure: everything that is held of a tenant goes, but what a law says must be kept.

    await pg.erase(tenant="org-1", by="ana", reason="asked by letter of 3 May")

    option      what a program says about it
    record      `faena.erasures`: one row for each request, with its counts
    place       what a place is: it can be counted and erased
    row         rows of the outbox, of effects and of retrievals, with their files
    broker      jobs: live ones are waited for or cancelled, finished and dead ones are removed
    guard       which rows and objects a law protects, and why
    archived    tables with a tenant column, and the archives of their rows
    past        the history of jobs
    erasures    takes requests, carries them out place by place, checks that nothing is left

See docs/archives.md.
"""
