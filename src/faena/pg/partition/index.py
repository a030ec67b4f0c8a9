"""Gives a partitioned table in use an index, partition by partition, without locking writers out.

The index of the whole table is created first and has no effect yet (ON ONLY). Each partition's is
built CONCURRENTLY and attached to it; with the last one, the whole becomes valid. A build that was
interrupted leaves an invalid index, which is built again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from psycopg import sql

from faena.errors import ArgumentError
from faena.pg.partition.catalog import Partition, Table, partitions_of
from faena.pg.partition.lock import patiently, retried
from faena.pg.partition.name import fit

if TYPE_CHECKING:
    from faena.pg.postgres import Connection, Postgres

_INDEXES: Final = """
    SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid = %s AND i.indpred IS NULL AND i.indexprs IS NULL AND %s = (
        SELECT array_agg(a.attname::text ORDER BY k.place)
        FROM unnest(i.indkey[0:i.indnkeyatts - 1]) WITH ORDINALITY k(number, place)
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
    ) ORDER BY i.indisvalid DESC, c.relname
"""
_PAUSE_S: Final = 0.1
_COLUMNS: Final = "SELECT attname FROM pg_attribute WHERE attrelid = %s AND attnum > 0"


async def ensure_index(pg: Postgres, table: Table, columns: tuple[str, ...]) -> str | None:
    """Have all partitions an index on these columns; returns its name if it was missing."""

    async def begin(connection: Connection) -> tuple[str, bool]:
        await _refuse_unknown(connection, table, columns)
        found = await _find(connection, table.oid, columns)
        if found is not None:
            return found
        name = fit(f"{table.name}_{'_'.join(columns)}", "_idx")
        await connection.execute(
            sql.SQL("CREATE INDEX {} ON ONLY {} ({})").format(
                sql.Identifier(name), table.identifier, _listed(columns)
            )
        )
        return name, False

    whole, is_valid = await patiently(pg, "ensure", str(table), begin)
    if is_valid:
        return None
    async with pg.transaction("ensure") as connection:
        known = await partitions_of(connection, table)
    for partition in known:
        name = await _build(pg, partition, columns)
        await _join(pg, table, whole, name)
    return whole


async def _build(pg: Postgres, partition: Partition, columns: tuple[str, ...]) -> str:
    async def attempt() -> str:
        async with pg.autocommit("ensure") as connection:
            await connection.execute("SELECT set_config('lock_timeout', '30s', false)")
            await _alone(connection, partition)
            found = await _find(connection, partition.oid, columns)
            if found is not None and found[1]:
                return found[0]
            if found is not None:
                await connection.execute(
                    sql.SQL("DROP INDEX CONCURRENTLY {}").format(
                        sql.Identifier(partition.schema, found[0])
                    )
                )
            name = fit(f"{partition.name}_{'_'.join(columns)}", "_idx")
            await connection.execute(
                sql.SQL("CREATE INDEX CONCURRENTLY {} ON {} ({})").format(
                    sql.Identifier(name), partition.identifier, _listed(columns)
                )
            )
            return name

    return await retried(pg, "ensure", partition.name, attempt)


async def _alone(connection: Connection, partition: Partition) -> None:
    """An index that another process builds is invalid too. The lock is asked for again and again
    and not waited for: CREATE INDEX CONCURRENTLY waits for all who wait."""
    while True:
        found = await connection.execute(
            "SELECT pg_try_advisory_lock(hashtextextended('faena.index ' || %s, 0))",
            [partition.oid],
        )
        if await found.fetchone() == (True,):
            return
        await asyncio.sleep(_PAUSE_S)


async def _join(pg: Postgres, table: Table, whole: str, part: str) -> None:
    async def work(connection: Connection) -> None:
        await connection.execute(
            sql.SQL("ALTER INDEX {} ATTACH PARTITION {}").format(
                table.beside(whole), table.beside(part)
            )
        )

    await patiently(pg, "ensure", str(table), work)


async def _find(
    connection: Connection, oid: int, columns: tuple[str, ...]
) -> tuple[str, bool] | None:
    row = await (await connection.execute(_INDEXES, [oid, list(columns)])).fetchone()
    return None if row is None else (str(row[0]), bool(row[1]))


async def _refuse_unknown(connection: Connection, table: Table, columns: tuple[str, ...]) -> None:
    known = {row[0] for row in await (await connection.execute(_COLUMNS, [table.oid])).fetchall()}
    for one in columns:
        if one not in known:
            raise ArgumentError(
                f"an index must be on columns of {table}, got {one}", field="indexes", value=one
            )


def _listed(columns: tuple[str, ...]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))
