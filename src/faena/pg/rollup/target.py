"""The table that a roll-up fills: made once, and refused if it is somebody else's.

Everything that a declaration says is tried on PostgreSQL without reading a row: unknown columns,
and measures that are no aggregates, are refused before the first period.
"""

from __future__ import annotations

from datetime import date, time, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

import psycopg
from psycopg import sql

from faena.errors import ArgumentError, StoreRejected
from faena.pg.archive.removal import removed_before
from faena.pg.conversion.structure import verbatim
from faena.pg.partition.catalog import Table, check_type, exists, find_table
from faena.pg.partition.name import Name, fit
from faena.pg.rollup.declaration import Declaration

if TYPE_CHECKING:
    from faena.pg.postgres import Connection

_COLUMNS: Final = """
    SELECT attname, atttypid::int FROM pg_attribute
    WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_TYPE: Final = """
    SELECT format_type(atttypid, NULL) FROM pg_attribute
    WHERE attrelid = %s AND attname = %s AND attnum > 0 AND NOT attisdropped
"""
_WRONG: Final = (
    psycopg.ProgrammingError,
    psycopg.DataError,
    psycopg.NotSupportedError,
)


class Target(NamedTuple):
    """Where a roll-up reads and writes."""

    source: Table
    table: Table
    type_: str
    """Of the column that decides the period."""


async def prepare(connection: Connection, declared: Declaration) -> Target:
    """Find both tables; the one of the aggregates is made, with its record, if it is missing."""
    source = await find_table(connection, declared.of)
    type_ = await _check_by(connection, source, declared)
    await _check_columns(connection, source, declared)
    for name, words in declared.measures:
        await _check_measure(connection, source, name, words)
    place = await _place(connection, declared.name)
    if not await exists(connection, place.schema or "", place.table):
        await _create(connection, declared, source, place)
    table = await find_table(connection, place)
    await _check_table(connection, declared, source, table)
    return Target(source, table, type_)


async def _place(connection: Connection, name: Name) -> Name:
    """With its schema, which is where a new table would be."""
    if name.schema is not None:
        return name
    row = await (await connection.execute("SELECT current_schema()")).fetchone()
    return Name(str(row[0] if row else "public"), name.table)


async def _check_by(connection: Connection, source: Table, declared: Declaration) -> str:
    row = await (await connection.execute(_TYPE, [source.oid, declared.by])).fetchone()
    if row is None:
        raise ArgumentError(
            f"by must be a column of {source}, got {declared.by}", field="by", value=declared.by
        )
    type_ = check_type(declared.by, row[0])
    if type_ == "date" and declared.zone.key != "UTC":
        raise ArgumentError(
            f"tz must be UTC, because column {declared.by} of {source} is a date and no "
            f"instant, got {declared.zone.key}",
            field="tz",
            value=declared.zone.key,
        )
    return type_


async def _check_columns(connection: Connection, source: Table, declared: Declaration) -> None:
    rows = await (await connection.execute(_COLUMNS, [source.oid])).fetchall()
    known = {name for name, _ in rows}
    for one in declared.group:
        if one not in known:
            raise ArgumentError(
                f"group must be columns of {source}, got {one}", field="group", value=one
            )


async def _check_measure(connection: Connection, source: Table, name: str, words: str) -> None:
    """An aggregate of no rows is a row; anything else is none."""
    query = sql.SQL("SELECT ({}) FROM {} WHERE false").format(verbatim(words), source.identifier)
    try:
        async with connection.transaction():
            found = await connection.execute(query, binary=True)  # one statement only
            rows = await found.fetchall()
    except _WRONG as error:
        why = error.diag.message_primary or str(error)
        raise _refused(name, words, f": {why}") from error
    if len(rows) != 1:
        raise _refused(name, words, "")


def _refused(name: str, words: str, why: str) -> ArgumentError:
    return ArgumentError(
        f"measure {name} must be made of aggregates such as sum(total), got {words}{why}",
        field="measures",
        value=words,
    )


async def _create(
    connection: Connection, declared: Declaration, source: Table, place: Name
) -> None:
    table = place.identifier
    await connection.execute(
        sql.SQL("CREATE TABLE {} AS {} WITH NO DATA").format(
            table, selected(declared, source, sql.SQL("NULL"), sql.SQL("false"))
        )
    )
    period = sql.Identifier(declared.every)
    await connection.execute(sql.SQL("ALTER TABLE {} ALTER {} SET NOT NULL").format(table, period))
    await connection.execute(
        sql.SQL("CREATE INDEX {} ON {} ({})").format(
            sql.Identifier(fit(declared.name.table, "_idx")),
            table,
            sql.SQL(", ").join([period, *map(sql.Identifier, declared.group)]),
        )
    )
    await connection.execute(
        "INSERT INTO faena.rollups (name, digest) VALUES (%s, %s) "
        "ON CONFLICT (name) DO UPDATE SET digest = excluded.digest, sealed_before = NULL, "
        "backfill_first = NULL, backfill_last = NULL, backfill_next = NULL, ran_at = NULL",
        [str(place), declared.digest],
    )


async def _check_table(
    connection: Connection, declared: Declaration, source: Table, table: Table
) -> None:
    found = await connection.execute(
        "SELECT digest FROM faena.rollups WHERE name = %s", [str(table)]
    )
    row = await found.fetchone()
    if row is None:
        raise StoreRejected(
            f"table {table} must be made by this roll-up, but it was there before: choose another "
            f"name",
            op="rollup",
        )
    query = selected(declared, source, sql.SQL("NULL"), sql.SQL("false"))
    described = (await connection.execute(query)).description or []
    wanted = [(one.name, one.type_code) for one in described]
    have = await (await connection.execute(_COLUMNS, [table.oid])).fetchall()
    if row[0] == declared.digest and [tuple(one) for one in have] == wanted:
        return
    raise StoreRejected(
        f"table {table} was made by another declaration of this roll-up: drop it and back-fill, or "
        f"choose another name",
        op="rollup",
    )


async def removed_day(connection: Connection, declared: Declaration, source: Table) -> date | None:
    """Periods that begin before this day lack rows that retention has removed."""
    gone = await removed_before(connection, source, declared.by)
    if gone is None:
        return None
    local = gone.astimezone(declared.zone)
    is_midnight = local.replace(tzinfo=None).time() == time()
    return local.date() if is_midnight else local.date() + timedelta(days=1)


async def sealed_before(
    connection: Connection, declared: Declaration, source: Table, table: Table
) -> date | None:
    """Periods that begin before this day are not computed again."""
    found = await connection.execute(
        "SELECT sealed_before FROM faena.rollups WHERE name = %s", [str(table)]
    )
    row = await found.fetchone()
    both = (row[0] if row else None, await removed_day(connection, declared, source))
    return max((one for one in both if one is not None), default=None)


def selected(
    declared: Declaration, source: Table, period: sql.Composable, where: sql.Composable
) -> sql.Composed:
    """The aggregates of the rows that meet a condition."""
    group = [sql.Identifier(one) for one in declared.group]
    fields: list[sql.Composable] = [
        sql.SQL("{}::date AS {}").format(period, sql.Identifier(declared.every)),
        *group,
        *(
            sql.SQL("({}) AS {}").format(verbatim(words), sql.Identifier(name))
            for name, words in declared.measures
        ),
    ]
    by = sql.SQL(", ").join([*group, sql.SQL("()")])
    return sql.SQL("SELECT {} FROM {} WHERE {} GROUP BY {} HAVING count(*) > 0").format(
        sql.SQL(", ").join(fields), source.identifier, where, by
    )
