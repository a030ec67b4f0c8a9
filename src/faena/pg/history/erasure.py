"""Deletes what the history has of a tenant, and lets nothing of it come in afterwards.

That the tenant is erased is noted first, while no reader writes: readers leave out what ended
before. So the rows that are there then are all there will be, and they go in bounded steps.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Final
from urllib.parse import quote

from faena.pg.history.store import ERASING
from faena.pg.postgres import Connection, Postgres

_AT_ONCE: Final = 1000
_NOTE: Final = """
    INSERT INTO faena.history_erasures AS e (tenant, until) VALUES (%s, %s)
    ON CONFLICT (tenant) DO UPDATE SET until = greatest(e.until, excluded.until)
"""
_DELETE: Final = f"""
    WITH gone AS (
        SELECT id, queue, finished_at FROM faena.history
        WHERE tenant = %s AND finished_at <= %s LIMIT {_AT_ONCE})
    DELETE FROM faena.history h USING gone
    WHERE (h.id, h.queue, h.finished_at) = (gone.id, gone.queue, gone.finished_at)
"""  # noqa: S608 - constants


async def erase(pg: Postgres, tenant: str, until: datetime) -> int:
    """Delete all rows of a tenant that ended until then; returns how many."""
    async with pg.transaction("erase") as connection:
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", [ERASING])
        await connection.execute(_NOTE, [hashlib.sha256(tenant.encode()).digest(), until])
    total = 0
    while True:
        async with pg.transaction("erase") as connection:
            number = await _delete(connection, tenant, until)
        total += number
        if number < _AT_ONCE:
            break
    async with pg.transaction("erase") as connection:  # its own shards have its name
        for table in (b"history_shards", b"history_gaps"):
            await connection.execute(
                b"DELETE FROM faena." + table + b" WHERE split_part(shard, '/@', 2) = %s",
                [quote(tenant, safe="")],
            )
    return total


async def _delete(connection: Connection, tenant: str, until: datetime) -> int:
    found = await connection.execute(_DELETE.encode(), [tenant, until])
    return found.rowcount
