"""Roll-ups: daily, weekly or monthly aggregates of a table, kept in a table of their own.

    pg.rollup("jobs_per_day", of="jobs", every="day", group=["organization_id"],
              measures={"jobs": "count(*)", "revenue": "sum(total)"})

A period is computed whole, in one transaction, so it can be run as often as one likes.
"""
