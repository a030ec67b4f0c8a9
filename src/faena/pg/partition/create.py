"""Creates one partition, in one transaction that locks nobody out.

The partition is made as a table of its own, with its indexes and a CHECK of its bounds, and then
attached: that takes SHARE UPDATE EXCLUSIVE on the partitioned table, beside which rows are read
and written. (CREATE TABLE … PARTITION OF would take ACCESS EXCLUSIVE.) A process that dies leaves
nothing, because all of it is one transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from psycopg import sql

from faena.errors import StoreRejected
from faena.pg.partition.catalog import Partition, Table, bound, exists, partitions_of, within
from faena.pg.partition.interval import Every, Period
from faena.pg.partition.name import Name, partition_name

if TYPE_CHECKING:
    from faena.pg.postgres import Connection

CHECK: Final = "faena_bounds"
"""The constraint that spares ATTACH its scan; gone with the same transaction."""


def refuse_default(table: Table, known: list[Partition]) -> None:
    """With a default partition, each ATTACH would lock and scan it."""
    for one in known:
        if one.is_default:
            raise StoreRejected(
                f"table {table} must have no default partition, got {one.name}: detach it, and "
                f"move its rows",
                op="ensure",
            )


def refuse_overlap(table: Table, name: str, period: Period, known: list[Partition]) -> None:
    """An instant belongs to one partition only."""
    for one in known:
        if one.overlaps(period):
            raise StoreRejected(
                f"partition {name} ({period}) of {table} must not overlap {one}, which is "
                f"attached already",
                op="ensure",
            )


async def create(
    connection: Connection,
    table: Table,
    by: str,
    type_: str,
    every: Every,
    period: Period,
    *,
    stem: str | None = None,
) -> str | None:
    """Create and attach the partition of a period; returns its name, None if there is one.

    `stem` is what names of partitions begin with, if not with the table's name.
    """
    known = await partitions_of(connection, table)
    if any(one.covers(period) for one in known):
        return None
    name = partition_name(stem or table.name, period, every)
    refuse_default(table, known)
    refuse_overlap(table, name, period, known)
    await _refuse_foreign(connection, table, name)
    await connection.execute(
        sql.SQL(
            "CREATE TABLE {} (LIKE {} INCLUDING ALL EXCLUDING IDENTITY, CONSTRAINT {} CHECK {})"
        ).format(
            table.beside(name), table.identifier, sql.Identifier(CHECK), within(by, period, type_)
        )
    )
    if not table.is_own:
        await connection.execute(
            sql.SQL("ALTER TABLE {} OWNER TO {}").format(
                table.beside(name), sql.Identifier(table.owner)
            )
        )
    await attach(connection, table, name, period, type_)
    return name


async def attach(
    connection: Connection, table: Table, name: str, period: Period, type_: str
) -> None:
    """Make a table that has the CHECK a partition."""
    await connection.execute(
        sql.SQL("ALTER TABLE {} ATTACH PARTITION {} FOR VALUES FROM ({}) TO ({})").format(
            table.identifier,
            table.beside(name),
            bound(period.start, type_),
            bound(period.end, type_),
        )
    )
    await connection.execute(
        sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(
            table.beside(name), sql.Identifier(CHECK)
        )
    )


async def _refuse_foreign(connection: Connection, table: Table, name: str) -> None:
    """What has the name of a partition without being one may hold anything."""
    if not await exists(connection, table.schema, name):
        return
    found = await connection.execute(
        "SELECT i.inhparent::regclass::text FROM pg_inherits i WHERE i.inhrelid = to_regclass(%s)",
        [Name(table.schema, name).quoted()],
    )
    row = await found.fetchone()
    what = f"which is a partition of {row[0]}" if row else "which is not attached to it"
    raise StoreRejected(
        f"partition {name} of {table} must be new, but there is a table {table.schema}.{name}, "
        f"{what}: attach it or rename it",
        op="ensure",
    )
