"""Takes a partition out of its table and back in, beside readers and writers.

DETACH … CONCURRENTLY is two transactions. Between them it waits for those who still use the
partition; a process that dies there leaves the detachment pending, and FINALIZE ends it.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final

from psycopg import errors as pg_errors
from psycopg import sql

from faena.errors import ArgumentError, StoreRejected
from faena.pg.partition.catalog import (
    Partition,
    Table,
    check_key,
    find_table,
    partitions_of,
    within,
)
from faena.pg.partition.create import CHECK, attach, refuse_default, refuse_overlap
from faena.pg.partition.declaration import Declaration
from faena.pg.partition.interval import Period, period_named, period_of
from faena.pg.partition.lock import patiently, retried
from faena.pg.partition.name import Name

if TYPE_CHECKING:
    from faena.pg.postgres import Connection, Postgres

_WAIT: Final = "5s"
"""Of a detachment, whose locks let readers and writers of the table pass."""


async def detach_partition(pg: Postgres, declared: Declaration, name: str) -> None:
    """Take a partition out; its rows stay in a table of its name."""

    async def attempt() -> None:
        table, known = await _look(pg, declared)
        await _finish_others(pg, table, known, name)
        wanted = next((one for one in known if one.name == name), None)
        if wanted is None:
            await _refuse_unknown(pg, table, name)
            return
        if wanted.is_default:
            raise StoreRejected(
                f"partition {name} of {table} is its default, which can only be detached by hand",
                op="detach",
            )
        await _detach(pg, table, wanted)

    await retried(pg, "detach", str(declared.table), attempt)


async def finish_detach(pg: Postgres, declared: Declaration) -> list[str]:
    """End detachments that were interrupted; returns the partitions."""

    async def attempt() -> list[str]:
        table, known = await _look(pg, declared)
        return await _finish_others(pg, table, known, None)

    return await retried(pg, "detach", str(declared.table), attempt)


async def _look(pg: Postgres, declared: Declaration) -> tuple[Table, list[Partition]]:
    async with pg.transaction("detach") as connection:
        table = await find_table(connection, declared.table)
        return table, await partitions_of(connection, table)


async def _finish_others(
    pg: Postgres, table: Table, known: list[Partition], name: str | None
) -> list[str]:
    """PostgreSQL allows one pending detachment in a table."""
    others = [one for one in known if one.is_detaching and one.name != name]
    for one in others:
        await _detach(pg, table, one)
    return [one.name for one in others]


async def _detach(pg: Postgres, table: Table, partition: Partition) -> None:
    how = sql.SQL("FINALIZE") if partition.is_detaching else sql.SQL("CONCURRENTLY")
    async with pg.autocommit("detach") as connection:
        await connection.execute("SELECT set_config('lock_timeout', %s, false)", [_WAIT])
        await connection.execute(
            sql.SQL("ALTER TABLE {} DETACH PARTITION {} {}").format(
                table.identifier, partition.identifier, how
            )
        )


async def _refuse_unknown(pg: Postgres, table: Table, name: str) -> None:
    """One that is detached already is what was asked for."""
    async with pg.transaction("detach") as connection:
        try:
            other = await find_table(connection, Name(table.schema, name))
        except ArgumentError:
            raise ArgumentError(
                f"table {table} has no partition {name}", field="partition", value=name
            ) from None
        found = await connection.execute(
            "SELECT inhparent::regclass::text FROM pg_inherits WHERE inhrelid = %s", [other.oid]
        )
        row = await found.fetchone()
    if row is not None:
        raise ArgumentError(
            f"partition must be one of {table}, got {name}, which is one of {row[0]}",
            field="partition",
            value=name,
        )


async def attach_partition(
    pg: Postgres, declared: Declaration, name: str, day: date | None
) -> Period:
    """Put a detached table back; its rows are checked before, without a lock on the table."""
    period = _period(declared, name, day)

    async def begin(connection: Connection) -> bool:
        table, type_, known = await _target(connection, declared)
        if any(one.name == name and one.covers(period) for one in known):
            return False
        refuse_default(table, known)
        refuse_overlap(table, name, period, known)
        await connection.execute(
            sql.SQL(
                "ALTER TABLE {0} DROP CONSTRAINT IF EXISTS {1}, ADD CONSTRAINT {1} CHECK {2} "
                "NOT VALID"
            ).format(table.beside(name), sql.Identifier(CHECK), within(declared.by, period, type_))
        )
        return True

    if not await patiently(pg, "attach", str(declared.table), begin):
        return period
    await _validate(pg, declared, name, period)

    async def end(connection: Connection) -> None:
        table, type_, _ = await _target(connection, declared)
        await attach(connection, table, name, period, type_)

    await patiently(pg, "attach", str(declared.table), end)
    return period


def _period(declared: Declaration, name: str, day: date | None) -> Period:
    period = period_of(day, declared.every) if day else period_named(name, declared.every)
    if period is None:
        raise ArgumentError(
            f"the name of a partition must end with its {declared.every}, or a day of it must be "
            f"given, got {name}",
            field="partition",
            value=name,
        )
    return period


async def _target(
    connection: Connection, declared: Declaration
) -> tuple[Table, str, list[Partition]]:
    table = await find_table(connection, declared.table)
    type_ = await check_key(connection, table, declared.by)
    return table, type_, await partitions_of(connection, table)


async def _validate(pg: Postgres, declared: Declaration, name: str, period: Period) -> None:
    """Reads all rows; others may read and write them meanwhile."""
    async with pg.transaction("attach") as connection:
        table = await find_table(connection, declared.table)
        try:
            await connection.execute(
                sql.SQL("ALTER TABLE {} VALIDATE CONSTRAINT {}").format(
                    table.beside(name), sql.Identifier(CHECK)
                )
            )
        except pg_errors.CheckViolation:
            raise StoreRejected(
                f"all rows of {name} must have {declared.by} in {period}, and some have not",
                op="attach",
            ) from None
