"""A table whose rows may leave: its columns and key, as the catalog has them, and why it may not.

Also how its rows are written as lines. A value is what its type writes, so that the type reads it
back; `exact` sets everything that this depends on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from psycopg import sql

from faena.errors import ArgumentError, StoreRejected, nearest
from faena.pg.archive.manifest import Column, schema_digest
from faena.pg.archive.policy import Policy
from faena.pg.partition.catalog import TYPES, Table, check_key, find_table

if TYPE_CHECKING:
    from faena.pg.postgres import Connection

_EXACT: Final = """
    SET LOCAL TimeZone TO 'UTC'; SET LOCAL DateStyle TO 'ISO, YMD';
    SET LOCAL IntervalStyle TO 'postgres'; SET LOCAL extra_float_digits TO 1;
    SET LOCAL bytea_output TO 'hex'; SET LOCAL lc_monetary TO 'C';
    SET LOCAL xmloption TO 'content'; SET LOCAL row_security TO off; SET LOCAL jit TO off;
    SET LOCAL idle_in_transaction_session_timeout TO '15s'
"""
_COLUMNS: Final = """
    SELECT attname, format_type(atttypid, atttypmod), attgenerated <> '',
           format_type(atttypid, NULL)
    FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_COLUMNS_NAMED: Final = """
    SELECT attrelid, attname, format_type(atttypid, atttypmod) FROM pg_attribute
    WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
"""
_KEY: Final = """
    SELECT a.attname FROM pg_index i
    CROSS JOIN unnest(i.indkey::smallint[]) WITH ORDINALITY AS k(number, place)
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
    WHERE i.indrelid = %s AND i.indisprimary ORDER BY k.place
"""
_DEPENDING: Final = """
    SELECT conrelid::regclass::text, conname FROM pg_constraint
    WHERE confrelid = %s AND contype = 'f' AND confdeltype IN ('c', 'n', 'd') AND conparentid = 0
    ORDER BY 1, 2 LIMIT 1
"""
_CHILDREN: Final = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s LIMIT 1"
_PLAIN: Final = frozenset(
    {"text", "character varying", "smallint", "integer", "bigint", "numeric", "real",
     "double precision", "date", "timestamp without time zone", "timestamp with time zone",
     "interval", "uuid", "json", "jsonb", "bytea"}
)  # fmt: skip
"""Types that a cast to text writes as their own output does; others may have casts of their own."""
DIGEST: Final = sql.SQL("('x' || left(encode(sha256({}), 'hex'), 15))::bit(60)::bigint")
"""Of one line in UTF-8, as `content.digest_of` computes it."""


async def exact(connection: Connection) -> None:
    """Have this transaction write all values in one form; one that is left alone ends itself.

    Row level security that would hide rows is an error here: hidden rows would be lost.
    """
    await connection.execute(_EXACT)


async def check_columns(connection: Connection, source: Source, relation: sql.Identifier) -> None:
    """Refuse to go on if the table, or a partition of it, has other columns than were exported.

    The caller holds a lock. The columns of a partition may be in another order.
    """
    where = relation.as_string(connection)
    found = await (await connection.execute(_COLUMNS_NAMED, [where])).fetchall()
    wanted = {(one.name, one.type) for one in source.columns}
    is_other = relation == source.table.identifier and {row[0] for row in found} != {
        source.table.oid
    }
    if is_other or {(name, type_) for _, name, type_ in found} != wanted:
        raise StoreRejected(
            f"the columns of {source.name} have changed since the run began: what was not archived "
            f"yet stays until the next run",
            op="archive",
        )


class Source(NamedTuple):
    """A table with all that its export needs."""

    table: Table
    policy: Policy
    columns: tuple[Column, ...]
    types: dict[str, str]
    """Of each column, without its length."""
    key: tuple[str, ...]
    """The primary key."""

    @property
    def name(self) -> str:
        """schema.table, as it is in the catalogue."""
        return str(self.table)

    @property
    def is_partitioned(self) -> bool:
        """Whether old rows leave with their partitions."""
        return self.table.kind == "p"

    @property
    def schema_digest(self) -> str:
        """Of the columns."""
        return schema_digest(self.columns)

    @property
    def time_type(self) -> str:
        """Of the column of the time."""
        return self.types[self.policy.by]

    @property
    def order(self) -> tuple[str, ...]:
        """The columns by which rows are exported: tenant, time, primary key."""
        first = (self.policy.tenant, self.policy.by)
        named = [one for one in (*first, *self.key) if one is not None]
        return tuple(dict.fromkeys(named))

    def text(self, column: str, of: str = "r") -> sql.Composed:
        """A value as its type writes it, or NULL."""
        value = sql.Identifier(of, column)
        if self.types[column] in _PLAIN:
            return sql.SQL("{}::text").format(value)
        # A row of NULLs in a composite column is not NULL, so IS NULL would be wrong.
        return sql.SQL("CASE WHEN {0} IS DISTINCT FROM NULL THEN format('%s', {0}) END").format(
            value
        )

    def texts(self, of: str = "r") -> sql.Composed:
        """All values, under the names of their columns."""
        return sql.SQL(", ").join(
            sql.SQL("{} AS {}").format(self.text(one.name, of), sql.Identifier(one.name))
            for one in self.columns
        )

    def line(self, of: str = "r") -> sql.Composed:
        """The line of a row, in UTF-8."""
        return sql.SQL(
            "(SELECT convert_to(row_to_json(faena_line.*)::text, 'UTF8')"
            " FROM (SELECT {}) AS faena_line)"
        ).format(self.texts(of))

    def type_of(self, column: str) -> sql.SQL:
        """For a cast."""
        return sql.SQL(next(one.type for one in self.columns if one.name == column))  # pyright: ignore[reportArgumentType] - as the catalog writes it


async def read_source(connection: Connection, policy: Policy) -> Source:
    """The table of a policy; refused if its rows cannot leave safely."""
    table = await find_table(connection, policy.table)
    if table.kind not in {"r", "p"}:
        raise ArgumentError(f"{table} must be a table, and is none", field="table")
    found = await (await connection.execute(_COLUMNS, [table.oid])).fetchall()
    columns = tuple(Column(name, type_, generated) for name, type_, generated, _ in found)
    types = {name: base for name, _, _, base in found}
    key = [row[0] for row in await (await connection.execute(_KEY, [table.oid])).fetchall()]
    _check_columns(table, policy, types)
    if policy.then is not None:
        await _check_deletion(connection, table, policy, key)
    return Source(table, policy, columns, types, tuple(key))


def _check_columns(table: Table, policy: Policy, types: dict[str, str]) -> None:
    wanted = {} if policy.then is None else {"by": policy.by}
    if policy.tenant is not None:
        wanted["tenant"] = policy.tenant
    for field, column in wanted.items():
        if column not in types:
            raise ArgumentError(
                f"{field} of {table} must be one of its columns, got {column}; "
                f"{nearest(column, types)}",
                field=field,
                value=column,
            )
    if policy.then is not None and types[policy.by] not in TYPES:
        raise ArgumentError(
            f"by of {table} must be a date or a timestamp, got {policy.by}, which is "
            f"{types[policy.by]}",
            field="by",
            value=policy.by,
        )


async def _check_deletion(
    connection: Connection, table: Table, policy: Policy, key: list[str]
) -> None:
    if table.kind == "p":
        await check_key(connection, table, policy.by)
    elif policy.then == "detach":
        raise StoreRejected(
            f"table {table} must be partitioned for then='detach', and is a plain table",
            op="archive",
        )
    if not key:
        raise StoreRejected(
            f"table {table} must have a primary key, so that each row leaves once", op="archive"
        )
    depending = await (await connection.execute(_DEPENDING, [table.oid])).fetchone()
    if depending is not None:
        raise StoreRejected(
            f"rows of {table} cannot leave: the foreign key {depending[1]} of {depending[0]} would "
            f"delete or change rows there as well",
            op="archive",
        )
    child = await (await connection.execute(_CHILDREN, [table.oid])).fetchone()
    if table.kind == "r" and child is not None:
        raise StoreRejected(
            f"table {table} must have no tables that inherit from it, got {child[0]}", op="archive"
        )
