"""A declared table: creates its partitions ahead, takes them out and back in, shows them."""

from __future__ import annotations

from datetime import date, datetime
from itertools import islice
from typing import TYPE_CHECKING

from faena.errors import ArgumentError
from faena.pg.partition.catalog import Table, check_key, find_table, partitions_of
from faena.pg.partition.create import create, refuse_default
from faena.pg.partition.declaration import Declaration
from faena.pg.partition.index import ensure_index
from faena.pg.partition.interval import (
    MOST_PARTITIONS,
    Every,
    Period,
    ahead_of,
    check_day,
    periods,
    utc,
)
from faena.pg.partition.lock import patiently
from faena.pg.partition.move import attach_partition, detach_partition, finish_detach
from faena.pg.partition.view import TableView, server_time, view

if TYPE_CHECKING:
    from faena.pg.postgres import Connection, Postgres


class PartitionedTable:
    """One declared table."""

    def __init__(self, pg: Postgres, declared: Declaration) -> None:
        self._pg = pg
        self.declared = declared

    @property
    def name(self) -> str:
        """As it was declared."""
        return str(self.declared.table)

    async def ensure(self, *, at: datetime | None = None, since: date | None = None) -> list[str]:
        """Create the partitions and indexes that are missing; returns the names of the new ones.

        The current partition and those ahead are created, from the one of the day `since` on.
        `at` is the current time, by default the server's.
        """
        if since is not None:
            check_day("since", since)
        table, type_, missing = await self._missing(at, since)
        made: list[str] = []
        for period in missing:
            name = await self._create(table, type_, period)
            if name is not None:
                made.append(name)
        for columns in self.declared.indexes:
            name = await ensure_index(self._pg, table, columns)
            if name is not None:
                made.append(name)
        return made

    async def _missing(
        self, at: datetime | None, since: date | None
    ) -> tuple[Table, str, list[Period]]:
        every = self.declared.every
        async with self._pg.transaction("ensure") as connection:
            table = await find_table(connection, self.declared.table)
            type_ = await check_key(connection, table, self.declared.by)
            today = (utc(at) if at else await server_time(connection)).date()
            known = await partitions_of(connection, table)
        refuse_default(table, known)
        wanted = ahead_of(today, every, self.declared.ahead)
        if since is not None and since < today:
            wanted = _bounded(since, wanted[-1].start, every)
        return table, type_, [one for one in wanted if not any(p.covers(one) for p in known)]

    async def _create(self, table: Table, type_: str, period: Period) -> str | None:
        async def work(connection: Connection) -> str | None:
            declared = self.declared
            return await create(connection, table, declared.by, type_, declared.every, period)

        return await patiently(self._pg, "ensure", str(table), work)

    async def detach(self, partition: str) -> None:
        """Take a partition out beside readers and writers; its rows stay, in a table.

        Ends a detachment that was interrupted. One that is detached already stays so.
        """
        await detach_partition(self._pg, self.declared, partition)

    async def finish_detach(self) -> list[str]:
        """End detachments that were interrupted; returns the partitions."""
        return await finish_detach(self._pg, self.declared)

    async def attach(self, partition: str, *, day: date | None = None) -> Period:
        """Put a detached table back; its period is the one of `day`, or the one in its name."""
        return await attach_partition(self._pg, self.declared, partition, day)

    async def view(self, *, at: datetime | None = None) -> TableView:
        """Its partitions, until when they last, and what is wrong."""
        return await view(self._pg, self.declared, at)

    def __repr__(self) -> str:
        return f"<PartitionedTable {self.name} by {self.declared.every} of {self.declared.by}>"


def _bounded(since: date, last: date, every: Every) -> list[Period]:
    """A typing error in a year would make a partition for each day of centuries."""
    found = [*islice(periods(since, last, every), MOST_PARTITIONS + 1)]
    if len(found) > MOST_PARTITIONS:
        raise ArgumentError(
            f"since must need at most {MOST_PARTITIONS} partitions, got {since}, which needs one "
            f"for each {every} since then: begin later, or choose a longer interval",
            field="since",
            value=since,
        )
    return found
