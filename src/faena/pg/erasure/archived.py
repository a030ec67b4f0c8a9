"""Tables with a tenant column, and the archives of their rows.

Both are erased under the table's fence (`archive/fence.py`): no archiver exports rows meanwhile,
one that was interrupted has left entries of its objects, and one that was frozen stops at its next
transaction and removes what it has stored. An object goes before its entry. The entry stays for a
week without its tenant, and its key is removed again daily: a frozen process may still write it.

What a law protects is kept: rows that are younger than the table's legal minimum, and objects with
such rows.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import psycopg
from psycopg import sql

from faena.errors import FaenaError
from faena.pg.archive.catalogue import Entry, State, Wanted, read_entries
from faena.pg.archive.fence import Busy, Fence, Superseded
from faena.pg.archive.manifest import manifest_key
from faena.pg.archive.policy import Policy
from faena.pg.archive.protection import read_protection
from faena.pg.archive.source import Source, exact, read_source
from faena.pg.archive.term import FOREVER, Term, is_shorter
from faena.pg.erasure.option import Erasure
from faena.pg.erasure.place import Found, Kept, NotYet

if TYPE_CHECKING:
    from faena.pg.erasure.record import Tally
    from faena.pg.pool import Connection
    from faena.pg.postgres import Postgres

_STATES: Final[tuple[State, ...]] = ("writing", "verified", "archived", "discarded", "restored")
_PAGE: Final = 200
_MARK: Final = """
    UPDATE faena.archives SET state = 'erased', tenant = NULL, last_key = '{}', changed_at = now()
    WHERE id = ANY(%s) AND state <> 'erased'
"""
_RELATION: Final = """
    SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid = %s AND c.relispartition IS FALSE
"""


class Guard(NamedTuple):
    """What a law says about a table, now."""

    legal: Term | Literal["forever"] | None
    cutoff: datetime | None
    """Older rows may go; None: all may, or none with `forever`."""

    @property
    def is_open(self) -> bool:
        """Whether everything may go."""
        return self.legal is None

    def may_go(self, last_at: datetime) -> bool:
        """Whether rows up to an instant may go."""
        return self.is_open or (self.cutoff is not None and last_at < self.cutoff)

    def kept(self, place: str, number: int, last_at: datetime | None) -> tuple[Kept, ...]:
        """What is kept, and until when."""
        if not number:
            return ()
        until = None
        if isinstance(self.legal, Term) and last_at is not None:
            until = self.legal.after(last_at)
        words = "for ever" if self.legal == FOREVER else f"for {self.legal}"
        return (Kept(place, number, f"it must be kept {words}", until),)


class Archived:
    """One table and its archives."""

    def __init__(self, pg: Postgres, table: str, policy: Policy | None, options: Erasure) -> None:
        """`table` is schema.table; without a policy, only its archives are known."""
        self._pg = pg
        self._table = table
        self._policy = policy
        self._options = options

    @property
    def name(self) -> str:
        """Its rows are counted under `table`, its objects under `archives`."""
        return f"table {self._table}"

    @property
    def _archives(self) -> str:
        return f"archives {self._table}"

    # -- counting ---------------------------------------------------------------------------------

    async def count(self, tenant: str) -> Found:
        """Rows and objects together."""
        guard, source, whose = await self._begin(tenant)
        number, kept = 0, tuple[Kept, ...]()
        if source is not None and whose is not None:
            for relation in await self._relations(source, None):
                may_go, stays, last_at = await self._counted(source, relation, whose, guard)
                number += may_go
                kept += guard.kept(self.name, stays, last_at)
        stays, last = 0, None
        async for some in self._entries(whose or tenant):
            protected = [one for one in some if not guard.may_go(one.last_at)]
            number += len(some) - len(protected)
            stays += len(protected)
            last = max([one.last_at for one in protected] + ([last] if last else []), default=None)
        return Found(number, (*kept, *guard.kept(self._archives, stays, last)))

    async def _counted(
        self, source: Source, relation: sql.Identifier, whose: str, guard: Guard
    ) -> tuple[int, int, datetime | None]:
        """Rows that may go, rows that stay, and the time of the newest of these."""
        may_go = self._may_go(source, guard)
        words = sql.SQL(
            "SELECT count(*) FILTER (WHERE {0}), count(*) FILTER (WHERE ({0}) IS NOT TRUE),"
            " max(r.{1}::timestamptz) FILTER (WHERE ({0}) IS NOT TRUE AND isfinite(r.{1}))"
            " FROM {2} AS r WHERE {3}"
        ).format(
            may_go, sql.Identifier(source.policy.by), relation, self._is_tenants(source, whose)
        )
        async with self._pg.transaction("erase") as connection:
            await exact(connection)
            row = await (await connection.execute(words)).fetchone()
        return (row[0], row[1], row[2]) if row else (0, 0, None)

    # -- erasing ----------------------------------------------------------------------------------

    async def erase(self, tenant: str, tally: Tally) -> None:
        """Rows first, so that no archiver finds them again; then objects."""
        guard, source, whose = await self._begin(tenant)
        if source is None and not [some async for some in self._entries(tenant)]:
            return
        async with self._fenced() as fence:
            if source is not None and whose is not None:
                for relation in await self._relations(source, fence):
                    await self._erase_rows(source, relation, whose, (guard, fence, tally))
            async for some in self._entries(whose or tenant):
                gone = [one for one in some if guard.may_go(one.last_at)]
                await self._erase_objects(gone, fence, tally)

    @asynccontextmanager
    async def _fenced(self) -> AsyncGenerator[Fence]:
        fence = Fence(self._pg, self._table, self._options.lease_us / 1e6)
        try:
            await fence.take()
        except Busy as error:
            raise NotYet(str(error)) from error
        try:
            async with fence.held():
                yield fence
        except Superseded as error:
            raise NotYet(str(error)) from error
        finally:
            await fence.end(None)

    async def _erase_rows(
        self,
        source: Source,
        relation: sql.Identifier,
        whose: str,
        under: tuple[Guard, Fence, Tally],
    ) -> None:
        guard, fence, tally = under
        words = sql.SQL(
            "WITH gone AS MATERIALIZED (SELECT r.tableoid AS part, r.ctid AS place FROM {0} AS r"
            " WHERE {1} AND {2} LIMIT {3} FOR UPDATE)"
            " DELETE FROM {0} AS r USING gone WHERE r.tableoid = gone.part AND r.ctid = gone.place"
        ).format(
            relation,
            self._is_tenants(source, whose),
            self._may_go(source, guard),
            sql.Literal(self._options.rows),
        )
        while True:
            async with self._pg.transaction("erase") as connection:
                await exact(connection)
                await fence.prove(connection, "erasing")
                found = await connection.execute(words)
                await tally.add(connection, self.name, found.rowcount)
            if not found.rowcount:
                return

    async def _erase_objects(self, gone: Sequence[Entry], fence: Fence, tally: Tally) -> None:
        for url in {one.store for one in gone}:
            here = [one for one in gone if one.store == url]
            keys = [one.key for one in here]
            async with self._pg.transaction("erase") as connection:
                await fence.prove(connection, "erasing")
            await self._pg.stores.at(url).delete(*keys, *map(manifest_key, keys))
            async with self._pg.transaction("erase") as connection:
                await fence.prove(connection, "erasing")
                found = await connection.execute(_MARK, [[one.id for one in here]])
                await tally.add(connection, self._archives, found.rowcount)

    # -- what is there ----------------------------------------------------------------------------

    async def _begin(self, tenant: str) -> tuple[Guard, Source | None, str | None]:
        """What a law says; the table, and its tenant as its column writes it, or None if the
        column cannot have it."""
        async with self._pg.transaction("erase") as connection:
            await exact(connection)
            known = await read_protection(connection, self._table)
            source = None
            if self._policy is not None and self._policy.tenant is not None:
                source = await read_source(connection, self._policy)
            now = await _now(connection)
        given = self._policy.protection if self._policy is not None else None
        legal = given if given is not None and is_shorter(known or Term(), given) else known
        cutoff = legal.before(now) if isinstance(legal, Term) else None
        whose = None if source is None else await self._as_written(source, tenant)
        return Guard(legal, cutoff), source, whose

    async def _as_written(self, source: Source, tenant: str) -> str | None:
        column = source.policy.tenant or ""
        words = sql.SQL("SELECT {}::{}::text").format(sql.Literal(tenant), source.type_of(column))
        try:
            async with self._pg.transaction("erase") as connection:
                row = await (await connection.execute(words)).fetchone()
        except FaenaError as error:
            if isinstance(error.__cause__, psycopg.DataError):
                return None
            raise
        return None if row is None else row[0]

    async def _relations(self, source: Source, fence: Fence | None) -> list[sql.Identifier]:
        """The table, partitions of it that were detached, and the one that is being archived."""
        found = [source.table.identifier]
        declared = self._pg.partitioned_tables.get(str(source.policy.table))
        if declared is not None:
            view = await declared.view()
            schema = source.table.schema
            found += [
                sql.Identifier(schema, one.name) for one in view.partitions if not one.is_attached
            ]
        if fence is not None and fence.pending is not None:
            async with self._pg.transaction("erase") as connection:
                row = await (await connection.execute(_RELATION, [fence.pending.oid])).fetchone()
            found += [sql.Identifier(*row)] if row else []
        return [one for place, one in enumerate(found) if one not in found[:place]]

    async def _entries(self, tenant: str) -> AsyncIterator[list[Entry]]:
        after = 0
        wanted = Wanted(self._table, tenant, states=_STATES)
        while True:
            async with self._pg.transaction("erase") as connection:
                page = await read_entries(connection, wanted, after=after, limit=_PAGE)
            if page:
                yield page
            if len(page) < _PAGE:
                return
            after = page[-1].id

    def _is_tenants(self, source: Source, whose: str) -> sql.Composed:
        column = source.policy.tenant or ""
        return sql.SQL("r.{} = {}::{}").format(
            sql.Identifier(column), sql.Literal(whose), source.type_of(column)
        )

    def _may_go(self, source: Source, guard: Guard) -> sql.Composable:
        if guard.is_open:
            return sql.SQL("true")
        if guard.cutoff is None:
            return sql.SQL("false")
        by = sql.Identifier(source.policy.by)
        return sql.SQL("r.{} < {}::timestamptz").format(by, sql.Literal(guard.cutoff.isoformat()))


async def _now(connection: Connection) -> datetime:
    row = await (await connection.execute("SELECT now()")).fetchone()
    assert row is not None  # noqa: S101 - a row of one value
    return row[0]
