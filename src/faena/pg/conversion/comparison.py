"""Compares the two tables, period by period: how many rows, and a sum of the digests of all rows.

Both are read in one snapshot. The mirror writes in the transaction of the program, so they are
equal in every snapshot, also while rows are written.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg import sql

from faena.pg.conversion.structure import Structure, listed
from faena.pg.partition.catalog import bound
from faena.pg.partition.interval import Every

if TYPE_CHECKING:
    from faena.pg.postgres import Connection


class Difference(NamedTuple):
    """A period in which the two tables are not equal."""

    start: date
    plain: int
    twin: int

    def __str__(self) -> str:
        return f"from {self.start}: {self.plain} rows in the plain table, {self.twin} in the twin"


class Comparison:
    """Compares a plain table with its twin."""

    def __init__(self, plain: Structure, twin: sql.Identifier, every: Every, type_: str) -> None:
        self._plain = plain
        self._twin = twin
        self._every = every
        self._type = type_

    async def differences(self, connection: Connection, low: date, high: date) -> list[Difference]:
        """The periods between two days in which they differ; none if they are equal."""
        where = sql.SQL("{by} >= {low} AND {by} < {high}").format(
            by=sql.Identifier(self._plain.by),
            low=bound(low, self._type),
            high=bound(high, self._type),
        )
        group = sql.SQL("date_trunc({}, {})::date").format(
            sql.Literal(self._every), sql.Identifier(self._plain.by)
        )
        return await self._compare(connection, group, where, [])

    async def tail_differences(self, connection: Connection, since: datetime) -> list[Difference]:
        """The same for all rows since an instant, and for those beyond the last partition."""
        where = sql.SQL("{} >= {}").format(sql.Identifier(self._plain.by), sql.Placeholder())
        group = sql.SQL("{}::date").format(sql.Literal(since.date()))
        return await self._compare(connection, group, where, [since])

    async def stray(self, connection: Connection, low: date, high: date) -> tuple[Any, Any] | None:
        """The first and last value of rows that no partition is for, if there are any."""
        found = await connection.execute(
            sql.SQL(
                "SELECT min({by}), max({by}) FROM {table} WHERE {by} < {low} OR {by} >= {high}"
            ).format(
                by=sql.Identifier(self._plain.by),
                table=self._plain.table.identifier,
                low=bound(low, self._type),
                high=bound(high, self._type),
            )
        )
        row = await found.fetchone()
        return None if row is None or row[0] is None else (row[0], row[1])

    async def _compare(
        self,
        connection: Connection,
        group: sql.Composable,
        where: sql.Composable,
        given: list[Any],
    ) -> list[Difference]:
        first = await self._sums(connection, self._plain.table.identifier, group, where, given)
        second = await self._sums(connection, self._twin, group, where, given)
        return [
            Difference(start, *(sums.get(start, (0, 0))[0] for sums in (first, second)))
            for start in sorted({*first, *second})
            if first.get(start) != second.get(start)
        ]

    async def _sums(
        self,
        connection: Connection,
        table: sql.Identifier,
        group: sql.Composable,
        where: sql.Composable,
        given: list[Any],
    ) -> dict[date, tuple[int, Any]]:
        columns = listed(tuple(one.name for one in self._plain.columns))
        found = await connection.execute(
            sql.SQL(
                "SELECT {}, count(*), sum(hashtextextended(ROW({})::text, 0)::numeric)"
                " FROM {} WHERE {} GROUP BY 1"
            ).format(group, columns, table, where),
            given,
        )
        return {row[0]: (row[1], row[2]) for row in await found.fetchall()}
