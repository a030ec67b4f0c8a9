"""Tables with a tenant column, and the archives of their rows.

Both are erased under the table's fence (`archive/fence.py`): no archiver exports rows meanwhile,
one that was interrupted has left entries of its objects, and one that was frozen stops at its next
transaction and removes what it has stored. An object goes before its entry. The entry stays for a
week without its tenant, and its key is removed again daily: a frozen process may still write it.

What a law protects is kept, rows and objects with such rows: `guard.py` is asked again in each
transaction that deletes rows, and right before objects are removed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import psycopg
from psycopg import sql

from faena.errors import FaenaError
from faena.pg.archive.catalogue import Entry, State, Wanted, read_entries
from faena.pg.archive.fence import Busy, Fence, Superseded
from faena.pg.archive.manifest import manifest_key
from faena.pg.archive.policy import Policy
from faena.pg.archive.source import Source, exact, read_source
from faena.pg.erasure.guard import Hold, RowGuard, guard_objects, guard_rows, kept
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
        """Rows, and objects under their own name."""
        source, whose = await self._begin(tenant)
        objects, stay = await self._counted_objects(whose or tenant)
        number, rows = 0, tuple[Kept, ...]()
        if source is not None and whose is not None:
            for relation in await self._relations(source, None):
                may_go, more = await self._counted_rows(source, relation, whose)
                number, rows = number + may_go, rows + more
        return Found(number, rows + stay, ((self._archives, objects),) if objects else ())

    async def _counted_rows(
        self, source: Source, relation: sql.Identifier, whose: str
    ) -> tuple[int, tuple[Kept, ...]]:
        async with self._pg.transaction("erase") as connection:
            await exact(connection)
            guard = await self._guard(connection, source, relation)
            words = sql.SQL("SELECT {} FROM {} AS r WHERE {}").format(
                guard.counts, relation, self._is_tenants(source, whose)
            )
            ((may_go, stay, *held),) = await (await connection.execute(words)).fetchall()
        return may_go, kept(self.name, stay, guard.holds(held))

    async def _counted_objects(self, whose: str) -> tuple[int, tuple[Kept, ...]]:
        async with self._pg.transaction("erase") as connection:
            guard = await guard_objects(connection, self._table, self._pg.retentions.values())
        may_go, stay, holds = 0, 0, dict[str, Hold]()
        async for some in self._entries(whose):
            for held in map(guard.holds, some):
                may_go, stay = may_go + (not held), stay + bool(held)
                for one in held:
                    holds[one.reason] = one.latest(holds.get(one.reason))
        return may_go, kept(self._archives, stay, [*holds.values()])

    # -- erasing ----------------------------------------------------------------------------------

    async def erase(self, tenant: str, tally: Tally) -> None:
        """Rows first, so that no archiver finds them again; then objects."""
        source, whose = await self._begin(tenant)
        if source is None and not [some async for some in self._entries(tenant)]:
            return
        async with self._fenced() as fence:
            if source is not None and whose is not None:
                for relation in await self._relations(source, fence):
                    await self._erase_rows(source, relation, whose, (fence, tally))
            async for some in self._entries(whose or tenant):
                await self._erase_objects(some, fence, tally)

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
        self, source: Source, relation: sql.Identifier, whose: str, under: tuple[Fence, Tally]
    ) -> None:
        """The lock comes first: nobody gives the table another name or other columns between the
        look at what protects it and the deletion."""
        fence, tally = under
        while True:
            async with self._pg.transaction("erase") as connection:
                await exact(connection)
                lock = sql.SQL("LOCK TABLE {} IN ROW EXCLUSIVE MODE").format(relation)
                await connection.execute(lock)
                await fence.prove(connection, "erasing")
                guard = await self._guard(connection, source, relation)
                found = await connection.execute(self._deletion(source, relation, whose, guard))
                await tally.add(connection, self.name, found.rowcount)
            if not found.rowcount:
                return

    def _deletion(
        self, source: Source, relation: sql.Identifier, whose: str, guard: RowGuard
    ) -> sql.Composed:
        return sql.SQL(
            "WITH gone AS MATERIALIZED (SELECT r.tableoid AS part, r.ctid AS place FROM {0} AS r"
            " WHERE {1} AND {2} LIMIT {3} FOR UPDATE)"
            " DELETE FROM {0} AS r USING gone WHERE r.tableoid = gone.part AND r.ctid = gone.place"
        ).format(
            relation,
            self._is_tenants(source, whose),
            guard.may_go,
            sql.Literal(self._options.rows),
        )

    async def _erase_objects(self, some: Sequence[Entry], fence: Fence, tally: Tally) -> None:
        for url in {one.store for one in some}:
            async with self._pg.transaction("erase") as connection:
                await fence.prove(connection, "erasing")
                guard = await guard_objects(connection, self._table, self._pg.retentions.values())
            here = [one for one in some if one.store == url and not guard.holds(one)]
            keys = [one.key for one in here]
            await self._pg.stores.at(url).delete(*keys, *map(manifest_key, keys))
            async with self._pg.transaction("erase") as connection:
                await fence.prove(connection, "erasing")
                found = await connection.execute(_MARK, [[one.id for one in here]])
                await tally.add(connection, self._archives, found.rowcount)

    # -- what is there ----------------------------------------------------------------------------

    async def _begin(self, tenant: str) -> tuple[Source | None, str | None]:
        """The table, and its tenant as its column writes it, or None if the column cannot have
        it."""
        if self._policy is None or self._policy.tenant is None:
            return None, None
        async with self._pg.transaction("erase") as connection:
            await exact(connection)
            source = await read_source(connection, self._policy)
        return source, await self._as_written(source, tenant)

    async def _guard(
        self, connection: Connection, source: Source, relation: sql.Identifier
    ) -> RowGuard:
        return await guard_rows(connection, source, relation, self._pg.retentions.values())

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
