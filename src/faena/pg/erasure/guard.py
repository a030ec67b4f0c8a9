"""What laws say about rows and objects that an erasure would delete, in the transaction that asks.

The protections are those that archivers obey (`archive/protection.py`): of the table, whatever its
name was, of what it is a partition of, and of its partitions, recorded or declared. A row goes when
all of them are over, each by its own column. Where a column cannot be judged, the rows are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from psycopg import sql

from faena.pg.archive.catalogue import Entry
from faena.pg.archive.policy import Policy
from faena.pg.archive.protection import (
    Protection,
    declared_protections,
    is_older,
    read_protections,
    relations_of,
)
from faena.pg.archive.source import Source
from faena.pg.archive.term import Term
from faena.pg.erasure.place import Kept
from faena.pg.partition.catalog import TYPES, in_utc

if TYPE_CHECKING:
    from faena.pg.pool import Connection

_COLUMNS: Final = """
    SELECT attrelid, attname, format_type(atttypid, NULL) FROM pg_attribute
    WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
"""
_NEWEST: Final = sql.SQL(
    "max(least(r.{0}::timestamptz, timestamptz '9999-01-01Z'))"
    " FILTER (WHERE NOT {1} AND isfinite(r.{0}))"
)
"""Python has no later years."""


class Hold(NamedTuple):
    """Why something is kept, and until when."""

    reason: str
    until: datetime | None
    """None: for ever, or unknown."""

    def latest(self, other: Hold | None) -> Hold:
        """Of two with the same reason, the one that ends later."""
        if other is None or other.until is None or self.until is None:
            return self if other is None or self.until is None else other
        return max(self, other)


def kept(place: str, number: int, holds: Sequence[Hold]) -> tuple[Kept, ...]:
    """What is kept in a place; it can go when nothing holds it any more."""
    if not number:
        return ()
    ends = [one.until for one in holds if one.until is not None]
    until = max(ends, default=None) if len(ends) == len(holds) else None
    words = ", and ".join(dict.fromkeys(one.reason for one in holds))
    return (Kept(place, number, f"it must be kept {words}", until),)


class _Rule(NamedTuple):
    """A protection of the rows `r` of one relation."""

    legal: Term | str
    column: str | None
    """That tells the age; None if there is no such time."""
    reason: str

    @property
    def is_over(self) -> sql.Composable:
        """Whether it lets a row go."""
        if self.column is None or not isinstance(self.legal, Term):
            return sql.SQL("false")
        return is_older(self.column, self.legal)

    @property
    def newest(self) -> sql.Composable:
        """The time of the newest row that it holds."""
        if self.column is None:
            return sql.SQL("NULL::timestamptz")
        return _NEWEST.format(sql.Identifier(self.column), self.is_over)

    def hold(self, newest: datetime | None) -> Hold:
        """Of rows up to an instant; None: unknown."""
        if newest is None or not isinstance(self.legal, Term):
            return Hold(self.reason, None)
        return Hold(self.reason, self.legal.after(newest))


class RowGuard(NamedTuple):
    """Which rows `r` of one relation may go."""

    rules: tuple[_Rule, ...]

    @property
    def may_go(self) -> sql.Composable:
        """For a WHERE."""
        over = [one.is_over for one in self.rules]
        return sql.SQL(" AND ").join(over) if over else sql.SQL("true")

    @property
    def counts(self) -> sql.Composed:
        """For a SELECT: rows that may go, those that stay, then of each rule how many it holds and
        the newest of them."""
        words = sql.SQL("count(*) FILTER (WHERE {0}), count(*) FILTER (WHERE NOT ({0}))")
        each = [
            sql.SQL(", count(*) FILTER (WHERE NOT {}), {}").format(one.is_over, one.newest)
            for one in self.rules
        ]
        return sql.Composed([words.format(self.may_go), *each])

    def holds(self, counted: Sequence[Any]) -> list[Hold]:
        """Of what was counted, after the first two."""
        pairs = zip(self.rules, counted[0::2], counted[1::2], strict=True)
        return [one.hold(newest) for one, number, newest in pairs if number]


async def guard_rows(
    connection: Connection, source: Source, relation: sql.Identifier, declared: Iterable[Policy]
) -> RowGuard:
    """Of a table, or of a partition of it that was detached, as they are now."""
    name = relation.as_string(connection)
    columns = await (await connection.execute(_COLUMNS, [name])).fetchall()
    oids = {source.table.oid, *(oid for oid, _, _ in columns)}
    times = {column for _, column, type_ in columns if type_ in TYPES}
    found = await _protections(connection, source.name, sorted(oids), declared)
    return RowGuard(tuple(_rule(source, one, times) for one in found))


def _rule(source: Source, one: Protection, times: set[str]) -> _Rule:
    column = one.by or source.policy.by
    words = _words(source.name, one)
    if not isinstance(one.legal, Term):
        return _Rule(one.legal, None, words)
    if column not in times:
        return _Rule(one.legal, None, f"{words} by the column {column}, which is gone or no time")
    told = "" if column == source.policy.by else f" by the column {column}"
    return _Rule(one.legal, column, f"{words}{told}")


class ObjectGuard(NamedTuple):
    """Which archives of one table may go."""

    table: str
    protections: tuple[Protection, ...]
    now: datetime

    def holds(self, entry: Entry) -> list[Hold]:
        """What keeps an object."""
        found = [self._hold(one, entry) for one in self.protections]
        return [one for one in found if one is not None]

    def _hold(self, one: Protection, entry: Entry) -> Hold | None:
        words = _words(self.table, one)
        if not isinstance(one.legal, Term):
            return Hold(words, None)
        if one.by not in {None, entry.by}:
            return Hold(f"{words} by the column {one.by}, which archives do not tell", None)
        if entry.last_at < one.legal.before(self.now):
            return None
        return Hold(words, one.legal.after(entry.last_at))


async def guard_objects(
    connection: Connection, table: str, declared: Iterable[Policy]
) -> ObjectGuard:
    """Of the archives of `schema.table`, which may have another name now, or be gone."""
    await in_utc(connection)
    oids = await relations_of(connection, table)
    found = await _protections(connection, table, oids, declared)
    row = await (await connection.execute("SELECT now()")).fetchone()
    assert row is not None  # noqa: S101 - a row of one value
    return ObjectGuard(table, tuple(found), row[0])


async def _protections(
    connection: Connection, table: str, oids: Sequence[int], declared: Iterable[Policy]
) -> list[Protection]:
    recorded = await read_protections(connection, table, oids)
    return [*recorded, *await declared_protections(connection, oids, declared)]


def _words(table: str, one: Protection) -> str:
    term = f"for {one.legal}" if isinstance(one.legal, Term) else "for ever"
    return term if one.table == table else f"{term} as {one.table}"
