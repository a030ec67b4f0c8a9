"""The long part of a conversion: the twin, its partitions, the mirror, the rows, the comparison.

Each step is one transaction that stores how far it is. Whoever runs it again continues there.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from psycopg import sql

from faena.errors import FaenaError, StoreRejected
from faena.pg.conversion.batch import Copied, Copier
from faena.pg.conversion.comparison import Comparison, Difference
from faena.pg.conversion.mirror import Mirror
from faena.pg.conversion.obstacle import base_type, refuse_obstacles
from faena.pg.conversion.record import (
    Record,
    add_record,
    change_record,
    known_record,
    open_record,
    read_record,
)
from faena.pg.conversion.structure import Structure, read_structure, twin_of
from faena.pg.conversion.twin import Twin
from faena.pg.partition.catalog import Table, find_table, in_utc
from faena.pg.partition.create import create
from faena.pg.partition.declaration import Declaration
from faena.pg.partition.interval import MOST_PARTITIONS, Period, ahead_of, period_of, periods
from faena.pg.partition.lock import is_busy, patiently
from faena.pg.partition.name import Name
from faena.pg.partition.view import server_time

if TYPE_CHECKING:
    from faena.pg.postgres import Connection, Postgres

_FIRST_BATCH, _MOST_BATCH, _LEAST_BATCH = 1000, 20_000, 10
_GOAL_S: Final = 0.08
"""Of one batch, whose rows nobody can change meanwhile."""
_TRIES: Final = 5


class Progress(NamedTuple):
    """What `run` tells its caller after each step."""

    step: str
    """twin, partition, mirror, rows or verified."""
    copied: int
    total: int
    """Estimated."""


Report = Callable[[Progress], None]


class Copying:
    """Makes the twin of one table and fills it."""

    def __init__(self, pg: Postgres, declared: Declaration, report: Report | None) -> None:
        self._pg = pg
        self._declared = declared
        self._report = report

    async def run(self) -> None:
        """From wherever it is to two equal tables."""
        table, record = await self._begin()
        for _ in range(_TRIES):
            plain, record = await self._look(table)
            type_ = base_type(plain.type_of(plain.by))
            if record.step == "copied" and await self.stray(plain, record, type_) is None:
                return
            await self._extend(plain, record, type_)
            plain, record = await self._look(table)
            await self._copy_all(plain, record, type_)
            if await self._verify(plain, type_):
                return
        raise StoreRejected(
            f"table {table} keeps getting rows that no partition is for: see `status`",
            op="convert",
        )

    def _tell(self, step: str, record: Record) -> None:
        if self._report is not None:
            self._report(Progress(step, record.copied, record.total))

    # -- the twin ---------------------------------------------------------------------------------

    async def _begin(self) -> tuple[Table, Record]:
        declared = self._declared

        async def work(connection: Connection) -> tuple[Table, Record]:
            table = await find_table(connection, declared.table)
            record = await read_record(connection, str(table))
            if record is None or (record.step == "finished" and table.kind == "r"):
                plain = await read_structure(connection, table, declared.by)
                await refuse_obstacles(connection, plain)
                await Twin(connection, plain).create(declared.indexes)
                await add_record(connection, table, declared.by, declared.every)
                record = await known_record(connection, str(table))
            _refuse_other(record, declared)
            return table, await open_record(connection, str(table))

        async with self._pg.transaction("convert") as connection:
            name = str(await find_table(connection, declared.table))
        table, record = await patiently(self._pg, "convert", name, work)
        self._tell("twin", record)
        return table, record

    async def _look(self, table: Table) -> tuple[Structure, Record]:
        async with self._pg.transaction("convert") as connection:
            record = await known_record(connection, str(table))
            return await read_structure(connection, table, self._declared.by), record

    # -- partitions and mirror --------------------------------------------------------------------

    async def _extend(self, plain: Structure, record: Record, type_: str) -> None:
        """Have partitions for all rows there are, and for those to come; then mirror."""
        wanted = await self._wanted(plain, record)
        for period in wanted:
            await self._create(plain, period, type_)
        low, high = wanted[0].start, wanted[-1].end
        if record.step == "preparing" or (record.low, record.high) != (low, high):
            await self._mirror(plain, low, high, type_)
            self._tell("mirror", record)

    async def _wanted(self, plain: Structure, record: Record) -> list[Period]:
        every = self._declared.every
        async with self._pg.transaction("convert") as connection:
            await in_utc(connection)
            by, table = sql.Identifier(plain.by), plain.table.identifier
            found = await connection.execute(
                sql.SQL("SELECT min({})::date::text, max({})::date::text FROM {}").format(
                    by, by, table
                )
            )
            first, last = await found.fetchone() or (None, None)
            today = (await server_time(connection)).date()
        days = [_day(plain, one) for one in (first, last) if one is not None]
        if record.low is None or record.high is None:
            days += [today, ahead_of(today, every, self._declared.ahead)[-1].start]
        else:
            days += [record.low, record.high - timedelta(days=1)]
        low, high = min(days), max(days)
        number = (high - low).days // {"month": 28, "week": 7, "day": 1}[every]
        if number > MOST_PARTITIONS:
            raise StoreRejected(
                f"rows of {plain.table} must need at most {MOST_PARTITIONS} partitions, but they "
                f"are from {low} to {high}: correct them, or choose a longer interval than {every}",
                op="convert",
            )
        return [*periods(low, period_of(high, every).start, every)]

    async def _create(self, plain: Structure, period: Period, type_: str) -> None:
        async def work(connection: Connection) -> str | None:
            twin = await find_table(connection, Name(plain.table.schema, twin_of(plain.table.name)))
            return await create(
                connection,
                twin,
                plain.by,
                type_,
                self._declared.every,
                period,
                stem=plain.table.name,
            )

        await patiently(self._pg, "convert", str(plain.table), work)

    async def _mirror(self, plain: Structure, low: date, high: date, type_: str) -> None:
        twin = plain.table.beside(twin_of(plain.table.name))
        mirror = Mirror(plain, plain.table.name)

        async def work(connection: Connection) -> None:
            source = plain.table.identifier
            await mirror.begin_forward(connection, twin, source, low, high, type_)
            record = await open_record(connection, str(plain.table))
            if record.step == "preparing":
                await mirror.quiet_backward(connection)
                await mirror.hang(connection, twin, mirror.backward)
                await mirror.hang(connection, source, mirror.forward)
            await change_record(connection, str(plain.table), step="copying", low=low, high=high)

        await patiently(self._pg, "convert", str(plain.table), work)

    # -- rows -------------------------------------------------------------------------------------

    async def _copy_all(self, plain: Structure, record: Record, type_: str) -> None:
        twin = plain.table.beside(twin_of(plain.table.name))
        copier = Copier(plain, twin, *record.reach, type_)
        size = _FIRST_BATCH
        while True:
            began = monotonic()
            copied = await self._copy_some(plain, copier, size)
            if copied is not None:
                _, record = await self._look(plain.table)
                self._tell("rows", record)
                if copied.last_key is None:
                    return
            is_slow = copied is None or monotonic() - began > _GOAL_S
            size = max(_LEAST_BATCH, size // 2) if is_slow else min(_MOST_BATCH, size * 2)

    async def _copy_some(self, plain: Structure, copier: Copier, size: int) -> Copied | None:
        """One batch; None if a row of it was locked, then a smaller one may pass."""
        name = str(plain.table)

        async def work(connection: Connection) -> Copied:
            await connection.execute("SET LOCAL row_security TO off")
            record = await open_record(connection, name)
            copied = await copier.copy(connection, record.last_key, size)
            await change_record(
                connection,
                name,
                last_key=copied.last_key or record.last_key,
                copied=record.copied + copied.rows,
            )
            return copied

        if size > _LEAST_BATCH:
            with suppress(_Busy):
                return await self._once(name, work)
            return None
        return await patiently(self._pg, "convert", name, work)

    async def _once(self, name: str, work: Callable[[Connection], Any]) -> Copied:
        try:
            return await patiently(self._pg, "convert", name, work, patience_s=0)
        except FaenaError as error:
            cause = error.__cause__
            if is_busy(error) or (isinstance(cause, FaenaError) and is_busy(cause)):
                raise _Busy from error
            raise

    # -- comparison -------------------------------------------------------------------------------

    async def _verify(self, plain: Structure, type_: str) -> bool:
        """Compare all periods; false if there are rows that no partition is for."""
        async with self._pg.transaction("convert") as connection:
            began = (await server_time(connection)).replace(tzinfo=UTC)
        _, record = await self._look(plain.table)
        if await self.stray(plain, record, type_) is not None:
            return False
        await self.verify(plain, *record.reach, type_)
        ranges, name = [one.start for one in self._periods(record)], str(plain.table)

        async def work(connection: Connection) -> None:
            await open_record(connection, name)
            await change_record(connection, name, step="copied", verified=ranges, verified_at=began)

        await patiently(self._pg, "convert", name, work)
        _, record = await self._look(plain.table)
        self._tell("verified", record)
        return True

    def _periods(self, record: Record) -> list[Period]:
        low, high = record.reach
        return [*periods(low, high - timedelta(days=1), self._declared.every)]

    async def stray(self, plain: Structure, record: Record, type_: str) -> object | None:
        """Rows of the plain table that no partition is for."""
        async with self._pg.transaction("convert") as connection:
            await in_utc(connection)
            comparison = self._comparison(plain, type_)
            return await comparison.stray(connection, *record.reach)

    def _comparison(self, plain: Structure, type_: str) -> Comparison:
        twin = plain.table.beside(twin_of(plain.table.name))
        return Comparison(plain, twin, self._declared.every, type_)

    async def verify(self, plain: Structure, low: date, high: date, type_: str) -> None:
        """Compare; what is missing is copied, what else differs is an error.

        A transaction may have begun before its rows had partitions, and have ended after they
        were copied: only such rows can be missing.
        """
        comparison = self._comparison(plain, type_)
        twin = plain.table.beside(twin_of(plain.table.name))
        copier = Copier(plain, twin, low, high, type_)
        found: list[Difference] = []
        for _ in range(_TRIES):
            async with self._pg.transaction("convert") as connection:
                await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                await connection.execute("SET LOCAL row_security TO off")
                await in_utc(connection)
                found = await comparison.differences(connection, low, high)
            if not found:
                return
            for one in found:
                await self._repair(plain, copier, one.start, type_)
        raise StoreRejected(
            f"table {plain.table} and its twin must be equal, but they differ "
            f"{'; '.join(map(str, found[:5]))}",
            op="convert",
        )

    async def _repair(self, plain: Structure, copier: Copier, start: date, type_: str) -> None:
        end = period_of(start, self._declared.every).end

        async def work(connection: Connection) -> int:
            return await copier.copy_range(connection, start, end, type_)

        await patiently(self._pg, "convert", str(plain.table), work)


class _Busy(Exception):
    """A lock was not free in time."""


def _day(plain: Structure, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise StoreRejected(
            f"all rows of {plain.table} must have {plain.by} in the years 1 to 9999, got {text}",
            op="convert",
        ) from None


def _refuse_other(record: Record, declared: Declaration) -> None:
    if (record.by, record.every) != (declared.by, declared.every):
        raise StoreRejected(
            f"the conversion of {record.table} was begun by {record.every} of {record.by}: "
            f"continue it so, or cancel it, got {declared.every} of {declared.by}",
            op="convert",
        )
