"""Copies rows of the plain table into its twin, a bounded number at a time, in order of the key.

The rows of a batch are locked FOR SHARE until they are copied. Without that, a row could be
deleted after the copier has read it and before it is in the twin: the mirror would find nothing
to delete there, and the copy would bring the row back. A row that the mirror has brought before
is left as it is (ON CONFLICT DO NOTHING). The last key is stored with the rows it stands for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg import sql

from faena.pg.conversion.structure import Structure, listed, verbatim
from faena.pg.partition.catalog import bound

if TYPE_CHECKING:
    from datetime import date

    from faena.pg.postgres import Connection


class Copied(NamedTuple):
    """What one batch did."""

    rows: int
    """Rows that were new in the twin."""
    last_key: list[str] | None
    """Where the next one begins; None after the last row."""


class Copier:
    """Copies from one table to its twin."""

    def __init__(
        self, plain: Structure, twin: sql.Identifier, low: date, high: date, type_: str
    ) -> None:
        self._plain = plain
        self._twin = twin
        self._range = sql.SQL("{by} >= {low} AND {by} < {high}").format(
            by=sql.Identifier(plain.by), low=bound(low, type_), high=bound(high, type_)
        )

    async def copy(self, connection: Connection, after: list[str] | None, most: int) -> Copied:
        """The next rows after a key."""
        last = await self._last(connection, after, most)
        beyond, given = self._beyond(">", after)
        up_to, more = self._beyond("<=", last)
        put = await self._put(connection, sql.SQL("{} AND {}").format(beyond, up_to), given + more)
        return Copied(put, last)

    async def copy_range(self, connection: Connection, low: date, high: date, type_: str) -> int:
        """What is missing in the twin of some days."""
        where = sql.SQL("{by} >= {low} AND {by} < {high}").format(
            by=sql.Identifier(self._plain.by), low=bound(low, type_), high=bound(high, type_)
        )
        return await self._put(connection, where, [])

    async def _put(self, connection: Connection, where: sql.Composable, given: list[Any]) -> int:
        columns = listed(self._plain.written)
        done = await connection.execute(
            sql.SQL(
                "INSERT INTO {twin} ({columns}) OVERRIDING SYSTEM VALUE"
                " SELECT {columns} FROM (SELECT {columns} FROM {plain}"
                " WHERE {where} AND {range} FOR SHARE) AS batch"
                " ON CONFLICT ({key}) DO NOTHING"
            ).format(
                twin=self._twin,
                plain=self._plain.table.identifier,
                columns=columns,
                where=where,
                range=self._range,
                key=listed(self._plain.twin_key),
            ),
            given,
        )
        return done.rowcount

    async def _last(
        self, connection: Connection, after: list[str] | None, most: int
    ) -> list[str] | None:
        """The key of the last row of the batch, read before rows are locked: a row whose key
        changes while it is waited for must not move the end of the batch."""
        beyond, given = self._beyond(">", after)
        key = self._plain.key
        texts = sql.SQL(", ").join(sql.SQL("t.{}::text").format(sql.Identifier(one)) for one in key)
        # With the alias: a bare name would be that of the text beside it, and sort as text.
        order = sql.SQL(", ").join(sql.SQL("t.{}").format(sql.Identifier(one)) for one in key)
        found = await connection.execute(
            sql.SQL("SELECT {} FROM {} AS t WHERE {} ORDER BY {} OFFSET {} LIMIT 1").format(
                texts,
                self._plain.table.identifier,
                beyond,
                order,
                sql.Literal(most - 1),
            ),
            given,
        )
        row = await found.fetchone()
        return None if row is None else [str(one) for one in row]

    def _beyond(self, how: str, key: list[str] | None) -> tuple[sql.Composable, list[Any]]:
        """The condition that a row comes after a key, or not."""
        if key is None:
            return sql.SQL("true"), []
        values = sql.SQL(", ").join(
            sql.SQL("{}::{}").format(sql.Placeholder(), verbatim(self._plain.type_of(one)))
            for one in self._plain.key
        )
        names = listed(self._plain.key)
        return sql.SQL("({}) {} ({})").format(names, verbatim(how), values), list(key)
