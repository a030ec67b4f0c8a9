"""Which rows are meant: those of a period or partition, between two places in their order.

Rows are in the order of tenant, time and primary key; rows without a tenant come last, as a part
of their own, because NULL has no place in a comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from psycopg import sql

from faena.pg.archive.source import Source


class Unit(NamedTuple):
    """What leaves together: a partition, or a period of a table without partitions."""

    start: datetime
    end: datetime
    """The first instant after it."""
    relation: sql.Identifier
    """The partition, or the table."""
    is_whole: bool
    """Whether the relation has no other rows."""

    def __str__(self) -> str:
        return f"{self.start.date()} to {self.end.date()}"


class Place(NamedTuple):
    """Where an export is: after the row with this key; before all rows without a key."""

    is_nobody: bool = False
    """Whether it is among the rows without a tenant."""
    key: tuple[str, ...] | None = None

    def as_stored(self) -> list[str | None]:
        """For the catalogue: the values of `source.order`."""
        return [*([None] if self.is_nobody else []), *(self.key or ())]


def place_of(source: Source, stored: Sequence[str | None]) -> Place:
    """Where an export had come."""
    is_nobody = source.policy.tenant is not None and stored[0] is None
    return Place(is_nobody, tuple(one for one in stored if one is not None))


def ordered(source: Source, place: Place) -> tuple[str, ...]:
    """The columns that decide the order in this part."""
    return source.order[1:] if place.is_nobody else source.order


def condition(
    source: Source, unit: Unit, after: Place, last: tuple[str, ...] | None = None
) -> sql.Composed:
    """The rows `r` of a unit after a place, up to a key in the same part."""
    parts = [_within(source, unit), _tenant(source, after)]
    columns = ordered(source, after)
    if after.key is not None:
        parts.append(_compared(source, columns, sql.SQL(">"), after.key))
    if last is not None:
        parts.append(_compared(source, columns, sql.SQL("<="), last))
    return sql.SQL(" AND ").join(parts)


def _within(source: Source, unit: Unit) -> sql.Composable:
    if unit.is_whole:
        return sql.SQL("true")
    return between(source, unit.start, unit.end)


def between(source: Source, start: datetime, end: datetime) -> sql.Composed:
    """The rows `r` from one instant on, and before another."""
    by = sql.Identifier("r", source.policy.by)
    low, high = (_instant(source, one) for one in (start, end))
    return sql.SQL("{0} >= {1} AND {0} < {2}").format(by, low, high)


def _instant(source: Source, at: datetime) -> sql.Composable:
    """An instant in UTC as a constant of the column's type.

    Never by strftime, whose years have no leading zeros: PostgreSQL would read 26 as 2026.
    """
    if source.time_type == "date":
        return sql.SQL("{}::date").format(sql.Literal(at.date().isoformat()))
    text = at.replace(tzinfo=None).isoformat(" ")
    if source.time_type == "timestamp with time zone":
        return sql.SQL("{}::timestamptz").format(sql.Literal(f"{text}+00"))
    return sql.SQL("{}::timestamp").format(sql.Literal(text))


def _tenant(source: Source, place: Place) -> sql.Composable:
    if source.policy.tenant is None:
        return sql.SQL("true")
    is_null = sql.SQL("IS NULL") if place.is_nobody else sql.SQL("IS NOT NULL")
    return sql.SQL("{} {}").format(sql.Identifier("r", source.policy.tenant), is_null)


def _compared(
    source: Source, columns: Sequence[str], how: sql.SQL, key: Sequence[str]
) -> sql.Composed:
    names = sql.SQL(", ").join(sql.Identifier("r", one) for one in columns)
    values = sql.SQL(", ").join(
        sql.SQL("{}::{}").format(sql.Literal(value), source.type_of(one))
        for one, value in zip(columns, key, strict=True)
    )
    return sql.SQL("({}) {} ({})").format(names, how, values)
