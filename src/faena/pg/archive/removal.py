"""How far rows of a table are gone, kept in the database for whoever computes something from them.

Whoever removes rows notes it in the same transaction, or in one before it. A roll-up looks at the
note after it has read the rows: if it has missed some, it sees why, and takes its work back.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from psycopg import sql

from faena.pg.archive.source import Source
from faena.pg.archive.span import Unit
from faena.pg.partition.catalog import TYPES, Table

if TYPE_CHECKING:
    from faena.pg.postgres import Connection

_NOTE: Final = sql.SQL("""
    INSERT INTO faena.removals AS known (table_name, by_column, before, relation, home)
    SELECT %(table)s, %(by)s, {}, %(oid)s, 'faena.removals'::regclass {}
    ON CONFLICT (table_name, by_column) DO UPDATE SET
        before = greatest(known.before, excluded.before), relation = excluded.relation,
        home = excluded.home, changed_at = now()
""")
_OTHERS: Final = """
    SELECT DISTINCT r.by_column FROM faena.rollups r JOIN pg_attribute a ON a.attrelid = %(oid)s
        AND a.attname = r.by_column AND a.attnum > 0 AND NOT a.attisdropped
    WHERE r.source = %(table)s AND r.by_column <> %(by)s
        AND format_type(a.atttypid, NULL) = ANY(%(types)s)
"""
_READ: Final = """
    WITH family AS (
        SELECT %(oid)s::oid AS oid
        UNION SELECT relid::oid FROM pg_partition_ancestors(%(oid)s::oid::regclass)
        UNION SELECT relid::oid FROM pg_partition_tree(%(oid)s::oid::regclass)
    )
    SELECT coalesce(max(m.gone) FILTER (WHERE m.by_column = %(by)s), max(m.gone))
    FROM (SELECT *, least(before, timestamptz '9999-12-01Z') AS gone FROM faena.removals) m
    WHERE EXISTS (
        SELECT FROM family f JOIN pg_class c ON c.oid = f.oid
        JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE m.table_name = n.nspname || '.' || c.relname
           OR f.oid = m.relation AND m.home = 'faena.removals'::regclass)
"""
"""A column that nobody knew of when rows were removed: as for the one that decided."""


async def note_removal(
    connection: Connection, source: Source, unit: Unit, where: sql.Composable
) -> None:
    """Rows `r` of a unit leave; for roll-ups by another column, their newest time there counts."""
    by = source.policy.by
    known = {"table": source.name, "oid": source.table.oid, "by": by}
    await connection.execute(_NOTE.format(sql.Literal(unit.end), sql.SQL("")), known)
    found = await connection.execute(_OTHERS, {**known, "types": [*TYPES]})
    for (column,) in await found.fetchall():
        newest = sql.SQL("max(r.{})::timestamptz + interval '1us'").format(sql.Identifier(column))
        rows = sql.SQL("FROM {} AS r WHERE {} AND isfinite(r.{}) HAVING count(*) > 0").format(
            unit.relation, where, sql.Identifier(column)
        )
        await connection.execute(_NOTE.format(newest, rows), {**known, "by": column})


async def removed_before(connection: Connection, table: Table, by: str) -> datetime | None:
    """Rows of a table with an earlier time in a column may be gone; None if none was removed."""
    found = await connection.execute(_READ, {"oid": table.oid, "by": by})
    row = await found.fetchone()
    return row[0] if row else None
