"""The conversion of a plain table into a partitioned one, while programs read and write it.

preparing   the twin exists, its partitions are being created
copying     what is written reaches both; older rows are copied
copied      both are equal: `swap` is possible
swapped     the twin has the name; what is written reaches both: `revert` is possible
finished    what was the plain table is no longer written, or was dropped
cancelling  the mirror has ended, the twin is being dropped
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from psycopg import errors as pg_errors
from psycopg import sql

from faena.errors import ConfigError, FaenaError, StoreRejected
from faena.pg.conversion.copying import Copying, Report
from faena.pg.conversion.exchange import revert, swap
from faena.pg.conversion.mirror import Mirror
from faena.pg.conversion.obstacle import base_type
from faena.pg.conversion.record import Record, change_record, read_record, remove_record
from faena.pg.conversion.structure import before_of, read_structure, twin_of
from faena.pg.partition.catalog import Table, find_table, partitions_of
from faena.pg.partition.declaration import Declaration, declaration
from faena.pg.partition.lock import patiently
from faena.pg.partition.name import Name
from faena.pg.partition.view import server_time
from faena.values.duration import Duration, to_s

if TYPE_CHECKING:
    from faena.pg.postgres import Connection, Postgres

_NEXT: Final = {
    "preparing": "run it again to continue",
    "copying": "run it again to continue",
    "copied": "swap",
    "swapped": "finish, or revert",
    "finished": "nothing",
    "cancelling": "cancel it again to end that",
}
_RECENT: Final = timedelta(minutes=5)
_AT_ONCE: Final = 50
"""Partitions dropped in one transaction: each takes several locks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionView:
    """How far a conversion is."""

    table: str
    step: str
    copied: int
    """Rows copied; those that the mirror has brought are not counted."""
    total: int
    """Rows of the table at the beginning, estimated."""
    verified: int
    """Periods in which the two tables were found equal."""
    started_at: datetime
    changed_at: datetime
    next: str
    """What can be done now."""


class Conversion:
    """One table's way to partitions."""

    def __init__(self, pg: Postgres, table: Name, declared: Declaration | None = None) -> None:
        """Without a declaration, one that was begun can be looked at and swapped, but not run."""
        self._pg = pg
        self._table = table
        self._declared = declared

    async def run(self, report: Report | None = None) -> ConversionView:
        """Create the twin, mirror writes, copy all rows, compare; then it can be swapped.

        May be interrupted at any moment and run again. `report` is called after each step.
        """
        if self._declared is None:
            raise ConfigError(
                f"the interval of {self._table} must be given: use pg.convert", field="every"
            )
        await Copying(self._pg, self._declared, report).run()
        return await self.status()

    async def status(self) -> ConversionView:
        """How far it is."""
        async with self._pg.transaction("convert") as connection:
            _, record = await self._find(connection)
        return ConversionView(
            table=record.table,
            step=record.step,
            copied=record.copied,
            total=record.total,
            verified=len(record.verified),
            started_at=record.started_at,
            changed_at=record.changed_at,
            next=_NEXT[record.step],
        )

    async def _find(self, connection: Connection) -> tuple[Table, Record]:
        table = await find_table(connection, self._table)
        record = await read_record(connection, str(table))
        if record is None:
            raise StoreRejected(f"no conversion of {table} was begun", op="convert")
        return table, record

    async def _in_step(
        self,
        op: str,
        steps: tuple[str, ...],
        work: Callable[[Connection, Table, Record], Awaitable[Any]],
    ) -> ConversionView:
        async def checked(connection: Connection) -> None:
            table, record = await self._find(connection)
            if record.step not in steps:
                raise StoreRejected(
                    f"a conversion must be {' or '.join(steps)} to {op} it, but that of {table} "
                    f"is {record.step}: {_NEXT[record.step]}",
                    op=op,
                )
            await work(connection, table, record)

        await patiently(self._pg, op, await self._subject(), checked)
        return await self.status()

    async def _subject(self) -> str:
        """One name for the lock of a table, however it was written."""
        async with self._pg.transaction("convert") as connection:
            return str(await find_table(connection, self._table))

    # -- the swap ---------------------------------------------------------------------------------

    async def swap(self, *, hold: Duration = "2s") -> ConversionView:
        """Give the partitioned table the name; the plain one is kept, equal, beside it.

        It is called `…_before_partitions` then. Rows written since the comparison are compared
        under the lock; no statement there may last longer than `hold`.
        """
        hold_ms = round(to_s("hold", hold) * 1000)
        await self._compare_recent()

        async def work(connection: Connection, table: Table, record: Record) -> None:
            twin = await find_table(connection, Name(table.schema, twin_of(table.name)))
            await swap(connection, record, table, twin, hold_ms=hold_ms)

        return await self._held(hold, self._in_step("swap", ("copied",), work))

    async def revert(self, *, hold: Duration = "2s") -> ConversionView:
        """Give the plain table its name again, with everything written since the swap."""
        hold_ms = round(to_s("hold", hold) * 1000)

        async def work(connection: Connection, table: Table, record: Record) -> None:
            plain = await find_table(connection, Name(table.schema, before_of(table.name)))
            await revert(connection, record, table, plain, hold_ms=hold_ms)

        return await self._held(hold, self._in_step("revert", ("swapped",), work))

    async def _held(self, hold: Duration, doing: Awaitable[ConversionView]) -> ConversionView:
        try:
            return await doing
        except FaenaError as error:
            if not isinstance(error.__cause__, pg_errors.QueryCanceled):
                raise
            raise StoreRejected(
                f"the comparison under the lock must last at most {hold}, and did not: nothing "
                f"was changed; create an index on the column of the partitions, or give a longer "
                f"hold",
                op="swap",
            ) from error

    async def _compare_recent(self) -> None:
        """So that few rows are left to compare under the lock."""
        async with self._pg.transaction("swap") as connection:
            table, record = await self._find(connection)
            now = (await server_time(connection)).replace(tzinfo=UTC)
            plain = await read_structure(connection, table, record.by)
        is_recent = record.verified_at is not None and now - record.verified_at < _RECENT
        if record.step != "copied" or record.verified_at is None or is_recent:
            return
        low, high = record.reach
        since = max(low, (record.verified_at - timedelta(days=1)).date())
        declared = declaration(str(self._table), by=record.by, every=record.every)
        copying = Copying(self._pg, declared, None)
        await copying.verify(plain, since, high, base_type(plain.type_of(record.by)))
        async with self._pg.transaction("swap") as connection:
            await change_record(connection, record.table, verified_at=now)

    # -- the end ----------------------------------------------------------------------------------

    async def finish(self, *, drop: bool = False) -> ConversionView:
        """End the mirror after the swap; there is no way back. `drop` drops the plain table."""

        async def work(connection: Connection, table: Table, record: Record) -> None:
            before = table.beside(before_of(table.name))
            if record.step == "swapped":
                structure = await read_structure(connection, table, record.by)
                mirror = Mirror(structure, table.name)
                await mirror.take_down(connection, table.identifier)
                await mirror.drop_functions(connection)
                await change_record(connection, record.table, step="finished")
            if drop:
                await connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(before))

        return await self._in_step("finish", ("swapped", "finished"), work)

    async def cancel(self) -> None:
        """Give up before the swap: the mirror ends, and the twin, a copy, is dropped."""
        steps = ("preparing", "copying", "copied", "cancelling")

        async def silence(connection: Connection, table: Table, record: Record) -> None:
            structure = await read_structure(connection, table, record.by)
            await Mirror(structure, table.name).take_down(connection, table.identifier)
            await change_record(connection, record.table, step="cancelling")

        async def drop(connection: Connection) -> None:
            table, record = await self._find(connection)
            twin = await find_table(connection, Name(table.schema, twin_of(table.name)))
            for one in (await partitions_of(connection, twin))[:_AT_ONCE]:
                await connection.execute(sql.SQL("DROP TABLE {}").format(one.identifier))
            if not await partitions_of(connection, twin):
                await connection.execute(sql.SQL("DROP TABLE {}").format(twin.identifier))
                structure = await read_structure(connection, table, record.by)
                await Mirror(structure, table.name).drop_functions(connection)
                await remove_record(connection, record.table)

        await self._in_step("cancel", steps, silence)
        while await self._is_begun():
            await patiently(self._pg, "cancel", await self._subject(), drop)

    async def _is_begun(self) -> bool:
        async with self._pg.transaction("cancel") as connection:
            table = await find_table(connection, self._table)
            return await read_record(connection, str(table)) is not None

    def __repr__(self) -> str:
        return f"<Conversion of {self._table}>"
