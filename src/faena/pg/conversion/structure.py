"""What a plain table consists of, as far as a partitioned twin must have the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, LiteralString, NamedTuple

from psycopg import sql

from faena.errors import InternalError
from faena.pg.partition.catalog import Table
from faena.pg.partition.name import fit

if TYPE_CHECKING:
    from faena.pg.postgres import Connection

MIRROR: Final = "faena_mirror"
TRUNCATE: Final = "faena_mirror_truncate"
"""Triggers of a conversion."""

_COLUMNS: Final = """
    SELECT attname, format_type(atttypid, atttypmod), attnotnull, attgenerated::text,
           attidentity::text
    FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_KEY: Final = """
    SELECT a.attname FROM pg_index i
    CROSS JOIN unnest(i.indkey[0:i.indnkeyatts - 1]) WITH ORDINALITY k(number, place)
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
    WHERE i.indrelid = %s AND i.indisprimary ORDER BY k.place
"""
_INDEXES: Final = """
    SELECT c.relname, i.indisprimary, i.indisunique, pg_get_constraintdef(con.oid),
           pg_get_indexdef(c.oid),
           format('CREATE %%sINDEX %%I ON %%s%%I.%%I', CASE WHEN i.indisunique THEN 'UNIQUE ' END,
                  c.relname, CASE WHEN t.relkind = 'p' THEN 'ONLY ' END, n.nspname, t.relname),
           obj_description(c.oid, 'pg_class'), obj_description(con.oid, 'pg_constraint')
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
    JOIN pg_namespace n ON n.oid = t.relnamespace
    LEFT JOIN pg_constraint con ON con.conindid = c.oid AND con.conrelid = t.oid
    WHERE i.indrelid = %s ORDER BY NOT i.indisprimary, c.relname
"""


class Column(NamedTuple):
    """One column."""

    name: str
    type: str
    is_required: bool
    generated: str
    """Empty, or how its values are computed."""
    identity: str
    """Empty, or the kind of its identity."""


class Index(NamedTuple):
    """One index, with what makes the same one on another table."""

    name: str
    is_primary: bool
    is_unique: bool
    constraint: str | None
    """The definition of its constraint, if it belongs to one."""
    definition: str
    head: str
    """What its definition begins with, up to the table."""
    comment: str | None
    constraint_comment: str | None

    @property
    def tail(self) -> str:
        """Its definition from USING on."""
        if not self.definition.startswith(self.head):
            raise InternalError(f"the definition of an index must be readable: {self.definition}")
        return self.definition[len(self.head) :]


class Structure(NamedTuple):
    """A plain table, and the names that its conversion uses."""

    table: Table
    by: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    """The columns of its primary key."""
    indexes: tuple[Index, ...]

    @property
    def written(self) -> tuple[str, ...]:
        """The columns whose values are stored and not computed."""
        return tuple(one.name for one in self.columns if not one.generated)

    @property
    def twin_key(self) -> tuple[str, ...]:
        """The primary key of the twin: with the column of the partitions."""
        return self.key if self.by in self.key else (*self.key, self.by)

    def type_of(self, column: str) -> str:
        """The type of a column."""
        return next(one.type for one in self.columns if one.name == column)


async def read_structure(connection: Connection, table: Table, by: str) -> Structure:
    """Read it from the catalog."""
    columns = [Column(*row) for row in await rows(connection, _COLUMNS, table.oid)]
    key = [row[0] for row in await rows(connection, _KEY, table.oid)]
    indexes = [Index(*row) for row in await rows(connection, _INDEXES, table.oid)]
    return Structure(table, by, tuple(columns), tuple(key), tuple(indexes))


async def rows(connection: Connection, query: LiteralString, *args: Any) -> list[tuple[Any, ...]]:
    """All rows of a query."""
    return await (await connection.execute(query, args)).fetchall()


def twin_of(name: str) -> str:
    """The name of the partitioned twin, or of an index of it, until the swap."""
    return fit(name, "_partitioned")


def before_of(name: str) -> str:
    """The name of the plain table, or of an index of it, after the swap."""
    return fit(name, "_before_partitions")


def listed(names: tuple[str, ...]) -> sql.Composed:
    """Names of columns, separated by commas."""
    return sql.SQL(", ").join(map(sql.Identifier, names))


def verbatim(text: str) -> sql.SQL:
    """SQL that PostgreSQL itself has written: a definition out of its catalog."""
    return sql.SQL(text)  # pyright: ignore[reportArgumentType] - not a literal, but not ours either
