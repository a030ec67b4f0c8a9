"""What PostgreSQL's catalog knows about a partitioned table and its partitions.

Bounds are read in UTC, whatever the time zone of the server is; they are instants without a zone
here. A bound that no Python datetime can hold (infinity, before the year 1) is None: no bound.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import TYPE_CHECKING, Final, LiteralString, NamedTuple

from psycopg import sql

from faena.errors import ArgumentError, StoreRejected
from faena.pg.partition.interval import Period
from faena.pg.partition.name import Name

if TYPE_CHECKING:
    from faena.pg.postgres import Connection

TYPES: Final = ("date", "timestamp without time zone", "timestamp with time zone")

_FIRST: Final = datetime(1, 1, 1)  # noqa: DTZ001 - as all bounds here, in UTC
_BOUNDS: Final = re.compile(r"FOR VALUES FROM \((?P<low>.*)\) TO \((?P<high>.*)\)")

_TABLE: Final = """
    SELECT c.oid, n.nspname, c.relname, c.relkind::text, pg_get_userbyid(c.relowner),
           pg_has_role(c.relowner, 'MEMBER'), c.relowner = current_user::regrole
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid = to_regclass(%s)
"""
_KEY: Final = """
    SELECT p.partstrat::text, p.partnatts, a.attname, format_type(a.atttypid, NULL)
    FROM pg_partitioned_table p
    LEFT JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
    WHERE p.partrelid = %s
"""
_PARTITIONS: Final = """
    SELECT c.oid, n.nspname, c.relname, pg_get_expr(c.relpartbound, c.oid),
           i.inhdetachpending, c.reltuples::bigint, pg_total_relation_size(c.oid)
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE i.inhparent = %s
"""


class Table(NamedTuple):
    """A table, as the catalog has it."""

    oid: int
    schema: str
    name: str
    kind: str
    """`r` is a plain table, `p` a partitioned one."""
    owner: str
    is_owned: bool
    """Whether this user may change it."""
    is_own: bool
    """Whether this user is the owner, not only a member of that role."""

    @property
    def identifier(self) -> sql.Identifier:
        """For SQL."""
        return sql.Identifier(self.schema, self.name)

    def beside(self, name: str) -> sql.Identifier:
        """Another table of the same schema."""
        return sql.Identifier(self.schema, name)

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


class Partition(NamedTuple):
    """A partition, as the catalog has it."""

    oid: int
    schema: str
    name: str
    low: datetime | None
    high: datetime | None
    is_default: bool
    is_detaching: bool
    """A detachment was begun and not finished."""
    rows: int
    """As the last ANALYZE or VACUUM has estimated; -1 if there was none."""
    size: int
    """In bytes, with indexes."""

    @property
    def identifier(self) -> sql.Identifier:
        """For SQL."""
        return sql.Identifier(self.schema, self.name)

    def covers(self, period: Period) -> bool:
        """Whether its bounds are those of the period."""
        return (self.low, self.high) == (period.starts_at, period.ends_at)

    def overlaps(self, period: Period) -> bool:
        """Whether an instant is in both."""
        if self.is_default:
            return False
        begins_before = self.low is None or self.low < period.ends_at
        return begins_before and (self.high is None or self.high > period.starts_at)

    def __str__(self) -> str:
        low, high = (_shown(one) for one in (self.low, self.high))
        return f"{self.name} ({low} to {high})"


def _shown(bound: datetime | None) -> str:
    if bound is None:
        return "no bound"
    return str(bound.date() if bound.time() == datetime.min.time() else bound)


async def in_utc(connection: Connection) -> None:
    """Have this transaction read and write instants in UTC, in one form."""
    await connection.execute("SET LOCAL TimeZone TO 'UTC'; SET LOCAL DateStyle TO 'ISO, YMD'")


async def find_table(connection: Connection, name: Name) -> Table:
    """A table by its name."""
    found = await (await connection.execute(_TABLE, [name.quoted()])).fetchone()
    if found is None:
        raise ArgumentError(f"table {name} does not exist", field="table", value=str(name))
    return Table(*found)


async def exists(connection: Connection, schema: str, name: str) -> bool:
    """Whether any relation has the name."""
    found = await connection.execute(
        "SELECT to_regclass(%s) IS NOT NULL", [Name(schema, name).quoted()]
    )
    row = await found.fetchone()
    return bool(row and row[0])


async def check_key(connection: Connection, table: Table, by: str) -> str:
    """The type of the column by which a table is partitioned, if it is the one declared."""
    row = await (await connection.execute(_KEY, [table.oid])).fetchone()
    if row is None:
        raise StoreRejected(
            f"table {table} must be partitioned, but it is a plain table: convert it with "
            f"`faena pg partitions convert {table.name if table.schema == 'public' else table}`",
            op="partition",
        )
    strategy, number, column, type_ = row
    if strategy != "r" or number != 1 or column != by:
        raise StoreRejected(
            f"table {table} must be partitioned by range of {by} alone, got "
            f"{ {'r': 'range', 'l': 'list', 'h': 'hash'}.get(strategy, strategy) } of "
            f"{column or 'an expression'}{' and more' if number > 1 else ''}",
            op="partition",
        )
    return check_type(by, type_)


def check_type(by: str, type_: str) -> str:
    """Periods exist only for dates and timestamps."""
    if type_ not in TYPES:
        raise StoreRejected(
            f"column {by} must be a date or a timestamp, got {type_}", op="partition"
        )
    return type_


async def partitions_of(connection: Connection, table: Table) -> list[Partition]:
    """All partitions in order of time, also those whose detachment was not finished."""
    await in_utc(connection)
    rows = await (await connection.execute(_PARTITIONS, [table.oid])).fetchall()
    found = [_partition(*row) for row in rows]
    return sorted(found, key=lambda one: (one.is_default, one.low or _FIRST, one.name))


def _partition(
    oid: int, schema: str, name: str, bounds: str, pending: bool, rows: int, size: int
) -> Partition:
    match = _BOUNDS.fullmatch(bounds or "")
    low, high = (_instant(match[one]) for one in ("low", "high")) if match else (None, None)
    return Partition(oid, schema, name, low, high, bounds == "DEFAULT", pending, rows, size)


def _instant(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text.strip("'")).replace(tzinfo=None)
    except ValueError:
        return None


def bound(day: date, type_: str) -> sql.Composed:
    """The beginning of a day as a constant of the column's type."""
    kind: LiteralString = (
        "date"
        if type_ == "date"
        else "timestamptz"
        if type_ == "timestamp with time zone"
        else "timestamp"
    )
    zone = "+00" if kind == "timestamptz" else ""
    text = str(day) if kind == "date" else f"{day} 00:00:00{zone}"
    return sql.SQL("{}::{}").format(sql.Literal(text), sql.SQL(kind))


def within(by: str, period: Period, type_: str) -> sql.Composed:
    """The condition that a row belongs to a period, as PostgreSQL writes that of a partition."""
    return sql.SQL("({by} IS NOT NULL AND {by} >= {low} AND {by} < {high})").format(
        by=sql.Identifier(by), low=bound(period.start, type_), high=bound(period.end, type_)
    )
