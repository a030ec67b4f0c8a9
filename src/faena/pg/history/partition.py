"""The partitions of the history: made ahead, and dropped when all of their rows are too old."""

from __future__ import annotations

import logging
import time
from datetime import UTC, date, datetime
from typing import Final

from psycopg import sql

from faena.pg.history.option import History
from faena.pg.partition.catalog import find_table, partitions_of
from faena.pg.partition.declaration import declaration
from faena.pg.partition.interval import period_named
from faena.pg.partition.table import PartitionedTable
from faena.pg.partition.view import server_time
from faena.pg.postgres import Postgres

TABLE: Final = "faena.history"
_EVERY_S: Final = 3600.0
_DETACHED: Final = """
    SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND c.relkind = 'r' AND c.relname LIKE 'history\\_%%'
      AND NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = c.oid)
"""

_log = logging.getLogger("faena.pg")


class Keeper:
    """Looks after the partitions once an hour; any number of processes may."""

    def __init__(self, pg: Postgres, options: History) -> None:
        self._pg, self._options = pg, options
        self.table = PartitionedTable(pg, declaration(TABLE, by="finished_at", every=options.every))
        self._looked_at = -_EVERY_S

    async def run_once(self) -> None:
        """Make and drop partitions, if it is time to look."""
        if time.monotonic() >= self._looked_at + _EVERY_S:
            await self.ensure()
            await self.drop_old()
            self._looked_at = time.monotonic()

    async def ensure(self, since: date | None = None) -> list[str]:
        """Make those that are missing, from the one of a day on; returns their names.

        None is made for what is too old to be kept.
        """
        first = datetime.now(UTC).date() - self._options.kept()
        return await self.table.ensure(since=max(since, first) if since else None)

    async def drop_old(self) -> list[str]:
        """Drop partitions whose last row is older than `keep`; returns their names.

        A partition is detached beside readers and writers first. One that was detached by a
        process that died then is dropped by the next.
        """
        await self.table.finish_detach()
        async with self._pg.transaction("history") as connection:
            table = await find_table(connection, self.table.declared.table)
            known = await partitions_of(connection, table)
            before = await server_time(connection) - self._options.kept()
        for one in known:
            if one.high is not None and one.high <= before:
                await self.table.detach(one.name)
        return [name for name in await self._detached(before) if await self._drop(name)]

    async def _detached(self, before: datetime) -> list[str]:
        """Tables that were partitions of times which are over."""
        async with self._pg.transaction("history") as connection:
            found = await connection.execute(_DETACHED.encode(), ["faena"])
            names = [name for (name,) in await found.fetchall()]
        periods = {name: period_named(name, self._options.every) for name in names}
        return [name for name, one in periods.items() if one and one.ends_at <= before]

    async def _drop(self, name: str) -> bool:
        async with self._pg.transaction("history") as connection:
            words = sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier("faena", name))
            await connection.execute(words)
        _log.info("the history up to %s is older than %s: dropped", name, self._options.keep)
        return True
