"""One run of a policy: which rows are old, which periods or partitions they are in, and their end.

Everything is decided by the server's clock, in UTC. A partition leaves when its last instant is
older than the policy keeps; so does a period of a table without partitions.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from psycopg import sql

from faena.errors import ArgumentError, FaenaError, StoreRejected
from faena.pg.archive.archiver import Archiver, Report, Stores
from faena.pg.archive.deletion import Changed
from faena.pg.archive.fence import Fence, Pending, Superseded, read_pending
from faena.pg.archive.policy import Policy
from faena.pg.archive.protection import check_protection, protect
from faena.pg.archive.removal import note_removal
from faena.pg.archive.source import Source, exact, read_source
from faena.pg.archive.span import Place, Unit, between, condition
from faena.pg.archive.term import Term
from faena.pg.partition.catalog import Partition, partitions_of
from faena.pg.partition.declaration import declaration
from faena.pg.partition.interval import period_of
from faena.pg.partition.move import detach_partition

if TYPE_CHECKING:
    from faena.pg.postgres import Connection, Postgres

_TRIES: Final = 3
_SLACK: Final = timedelta(minutes=1)
"""Between the clocks of two machines."""
_FIRST: Final = datetime(1, 1, 1, tzinfo=UTC)

_log = logging.getLogger("faena.pg")


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """What a run did with one table."""

    table: str
    rows: int = 0
    """That have left."""
    objects: int = 0
    """That were archived."""
    problem: str | None = None
    """Why it stopped; None if all old rows have left."""


class Expiring(NamedTuple):
    """A unit that would leave now."""

    unit: Unit
    name: str
    """Of the partition, or of the table."""
    oid: int


class Run:
    """Archives one table as its policy says."""

    def __init__(
        self,
        pg: Postgres,
        policy: Policy,
        stores: Stores,
        *,
        lease_s: float,
        at: datetime | None = None,
    ) -> None:
        self._pg = pg
        self._policy = policy
        self._stores = stores
        self._lease_s = lease_s
        self._at = at
        self._archiver: Archiver | None = None

    async def run(self, report: Report | None = None) -> Archived:
        """Move all rows that are old enough; an error leaves the others for the next run."""
        source, cutoff, is_pending = await self._begin()
        if cutoff is None and not is_pending:
            return Archived(table=source.name)
        fence = Fence(self._pg, source.name, self._lease_s)
        await fence.take()
        archiver = self._archiver = Archiver(self._pg, source, fence, self._stores, report)
        try:
            async with fence.held():
                await self._leave(archiver, fence, source, cutoff)
        except FaenaError as error:
            if not isinstance(error, Superseded):
                await fence.end(str(error))
            raise
        await fence.end(None)
        _log.info(
            "%s: %d rows before %s have left, %d objects",
            source.name,
            archiver.rows,
            cutoff and cutoff.date(),
            archiver.objects,
        )
        return Archived(table=source.name, rows=archiver.rows, objects=archiver.objects)

    def failed(self, problem: str) -> Archived:
        """What was done before an error."""
        done = self._archiver
        rows, objects = (done.rows, done.objects) if done is not None else (0, 0)
        table = str(self._policy.table)
        return Archived(table=table, rows=rows, objects=objects, problem=problem)

    async def cutoff(self) -> datetime | None:
        """Rows before this instant leave; None if they are kept for ever."""
        async with self._pg.transaction("archive") as connection:
            await exact(connection)
            return await self._cutoff(connection)

    async def plan(self) -> tuple[Source, datetime | None, list[Expiring]]:
        """What a run would move now, without changing anything; refused as the run would be."""
        async with self._pg.transaction("archive") as connection:
            await exact(connection)
            source = await read_source(connection, self._policy)
            await check_protection(connection, source.table, self._policy)
            cutoff = await self._cutoff(connection)
            left = await read_pending(connection, source.name)
            if left is not None and self._is_kept(left, cutoff):
                await _find_detached(connection, left)
        found: list[Expiring] = []
        if cutoff is not None:
            found = [one async for one in self._expiring(source, cutoff)]
        return source, cutoff, found

    async def estimates(self, source: Source, some: list[Expiring]) -> list[int]:
        """About how many rows each has, as the planner thinks; no row is read."""
        found: list[int] = []
        async with self._pg.transaction("archive") as connection:
            await exact(connection)
            for one in some:
                words = sql.SQL("EXPLAIN (FORMAT JSON) SELECT FROM {} AS r WHERE {}").format(
                    one.unit.relation, condition(source, one.unit, Place())
                )
                row = await (await connection.execute(words)).fetchone()
                found.append(int(row[0][0]["Plan"]["Plan Rows"]) if row else 0)
        return found

    async def _begin(self) -> tuple[Source, datetime | None, bool]:
        """Checks everything before anything is changed."""
        async with self._pg.transaction("archive") as connection:
            await connection.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            await exact(connection)
            await self._refuse_future(connection)
            source = await read_source(connection, self._policy)
            await protect(connection, source.table, self._policy)
            left = await read_pending(connection, source.name)
            return source, await self._cutoff(connection), left is not None

    async def _refuse_future(self, connection: Connection) -> None:
        """Whoever says that it is later than it is would delete what is protected."""
        now = await _server_time(connection)
        if self._at is not None and self._at > now + _SLACK:
            raise ArgumentError(
                f"at must not be after the server's clock, which is at {now:%H:%M:%S} on "
                f"{now.date()}, got {self._at.date()}",
                field="at",
                value=self._at,
            )

    async def _cutoff(self, connection: Connection) -> datetime | None:
        """Rows before this instant leave; None if they are kept for ever."""
        keep = self._policy.keep
        if not isinstance(keep, Term):
            return None
        return keep.before(self._at or await _server_time(connection))

    async def _leave(
        self, archiver: Archiver, fence: Fence, source: Source, cutoff: datetime | None
    ) -> None:
        await archiver.sweep()
        if fence.pending is not None:
            await self._finish(archiver, fence, source, cutoff, fence.pending)
        if cutoff is None:
            return
        async for one in self._expiring(source, cutoff):
            if not source.is_partitioned:
                await archiver.leave_period(one.unit)
            elif source.policy.then == "detach":
                await self._detach(source, fence, one)
            else:
                await archiver.export_all(one.unit)
                await self._detach(source, fence, one)
                await self._drop(archiver, one.unit)

    # -- periods and partitions -------------------------------------------------------------------

    async def _expiring(self, source: Source, cutoff: datetime) -> AsyncIterator[Expiring]:
        """Units that are wholly older than the cutoff, oldest first."""
        if source.is_partitioned:
            async with self._pg.transaction("archive") as connection:
                known = await partitions_of(connection, source.table)
            for one in known:
                unit = _partition_unit(one)
                if unit is not None and unit.end <= cutoff and not one.is_detaching:
                    yield Expiring(unit, one.name, one.oid)
            return
        after = _FIRST
        while (oldest := await self._oldest(source, after, cutoff)) is not None:
            period = period_of(oldest, source.policy.every)
            start, after = _midnight(period.start), _midnight(period.end)
            if after > cutoff:
                return
            unit = Unit(start, after, source.table.identifier, is_whole=False)
            yield Expiring(unit, source.name, source.table.oid)

    async def _oldest(self, source: Source, after: datetime, cutoff: datetime) -> date | None:
        """The day of the oldest row from an instant on; not of one that is too young, whose year
        may be one that no Python date can hold."""
        words = sql.SQL(
            "SELECT min(r.{})::timestamp::date FROM {} AS r WHERE {} AND isfinite(r.{})"
        ).format(
            sql.Identifier(source.policy.by),
            source.table.identifier,
            between(source, after, cutoff),
            sql.Identifier(source.policy.by),
        )
        async with self._pg.transaction("archive") as connection:
            await exact(connection)
            row = await (await connection.execute(words)).fetchone()
        return None if row is None else row[0]

    # -- the end of a partition -------------------------------------------------------------------

    async def _detach(self, source: Source, fence: Fence, one: Expiring) -> None:
        """Recorded before: a partition that is detached is no longer found in its table, nor are
        its rows."""
        is_dropped = source.policy.then != "detach"
        async with self._pg.transaction("archive") as connection:
            await exact(connection)
            await fence.prove(connection, "detaching")
            await note_removal(connection, source, one.unit, sql.SQL("true"))
            if is_dropped:
                await fence.note(connection, one.unit.start, one.unit.end, one.oid)
        declared = declaration(source.name, by=source.policy.by, every="day")
        await detach_partition(self._pg, declared, one.name)

    async def _drop(self, archiver: Archiver, unit: Unit) -> None:
        """A partition that was written between its export and its detachment is exported again."""
        for _ in range(_TRIES):
            try:
                await archiver.drop(unit)
            except Changed:
                await archiver.discard(unit)
                await archiver.export_all(unit)
            else:
                return
        raise Changed(f"rows from {unit} change all the time, and were not deleted", op="archive")

    async def _finish(
        self,
        archiver: Archiver,
        fence: Fence,
        source: Source,
        cutoff: datetime | None,
        left: Pending,
    ) -> None:
        """End what an archiver had begun that was interrupted."""
        is_kept = self._is_kept(left, cutoff)
        async with self._pg.transaction("archive") as connection:
            await fence.prove(connection, "finishing")
            row = await _find_detached(connection, left, is_kept=is_kept)
            if row is None or is_kept:
                await fence.note(connection, left.start, left.end, None)
                return
        schema, name, parent = row
        unit = Unit(left.start, left.end, sql.Identifier(schema, name), is_whole=True)
        await archiver.export_all(unit)
        if parent is not None:
            await self._detach(source, fence, Expiring(unit, name, left.oid))
        await self._drop(archiver, unit)

    def _is_kept(self, left: Pending, cutoff: datetime | None) -> bool:
        """Whether the policy was changed since, and no longer lets the partition go."""
        return cutoff is None or left.end > cutoff or self._policy.then == "detach"


async def _find_detached(
    connection: Connection, left: Pending, *, is_kept: bool = True
) -> tuple[str, str, int | None] | None:
    """The partition that was to go, and its table; refused if it is kept, and is in no table."""
    found = await connection.execute(
        "SELECT n.nspname, c.relname, i.inhparent, coalesce(i.inhdetachpending, true)"
        " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " LEFT JOIN pg_inherits i ON i.inhrelid = c.oid WHERE c.oid = %s",
        [left.oid],
    )
    row: Any = await found.fetchone()
    if is_kept and row is not None and row[3]:
        raise StoreRejected(
            f"{row[0]}.{row[1]} was detached for its archive before the policy changed, and is "
            f"kept: attach it again with `faena pg partitions attach`",
            op="archive",
        )
    return None if row is None else row[:3]


async def _server_time(connection: Connection) -> datetime:
    row = await (await connection.execute("SELECT now()")).fetchone()
    return (row[0] if row else datetime.now(UTC)).astimezone(UTC)


def _partition_unit(one: Partition) -> Unit | None:
    """None without both bounds: such a partition never leaves."""
    if one.is_default or one.low is None or one.high is None:
        return None
    start, end = (bound.replace(tzinfo=UTC) for bound in (one.low, one.high))
    return Unit(start, end, one.identifier, is_whole=True)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
