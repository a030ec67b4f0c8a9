"""Rows of Faena's own tables: the outbox, results of effects, and retrievals with their files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from faena.pg.erasure.place import Found

if TYPE_CHECKING:
    from faena.pg.erasure.record import Tally
    from faena.pg.postgres import Postgres

_UNSENT: Final = """
    DELETE FROM faena.outbox WHERE number IN (SELECT number FROM faena.outbox
        WHERE tenant = %s AND sent_at IS NULL ORDER BY number LIMIT %s FOR UPDATE)
"""
_OUTBOX: Final = """
    DELETE FROM faena.outbox WHERE number IN (SELECT number FROM faena.outbox
        WHERE tenant = %s ORDER BY number LIMIT %s FOR UPDATE)
"""
_EFFECTS: Final = """
    UPDATE faena.effects SET result = NULL, tenant = NULL WHERE (queue, job, digest) IN (
        SELECT queue, job, digest FROM faena.effects WHERE tenant = %s LIMIT %s FOR UPDATE)
"""
_RETRIEVALS: Final = """
    UPDATE faena.retrievals SET state = 'erased', changed_at = now() WHERE id IN (
        SELECT id FROM faena.retrievals WHERE tenant = %s AND state <> 'erased' LIMIT %s FOR UPDATE)
"""


class Rows:
    """One table of the schema faena."""

    def __init__(self, pg: Postgres, name: str, *, change: str, count: str, rows: int) -> None:
        self._pg = pg
        self.name = name
        self._change = change
        self._count = count
        self._rows = rows

    async def count(self, tenant: str) -> Found:
        """As it is now."""
        async with self._pg.transaction("erase") as connection:
            row = await (await connection.execute(self._count.encode(), [tenant])).fetchone()
        return Found(row[0] if row else 0)

    async def erase(self, tenant: str, tally: Tally) -> None:
        """Until a step finds nothing more."""
        while True:
            async with self._pg.transaction("erase") as connection:
                found = await connection.execute(self._change.encode(), [tenant, self._rows])
                await tally.add(connection, self.name, found.rowcount)
            if found.rowcount < self._rows:
                return


def unsent(pg: Postgres, rows: int) -> Rows:
    """Jobs that the broker does not have yet: first, so that none of them comes to life."""
    count = "SELECT count(*) FROM faena.outbox WHERE tenant = %s AND sent_at IS NULL"
    return Rows(pg, "outbox", change=_UNSENT, count=count, rows=rows)


def outbox(pg: Postgres, rows: int) -> Rows:
    """The rest, when the broker has no live job of the tenant any more."""
    count = "SELECT count(*) FROM faena.outbox WHERE tenant = %s"
    return Rows(pg, "outbox", change=_OUTBOX, count=count, rows=rows)


def effects(pg: Postgres, rows: int) -> Rows:
    """Their results; that an effect has happened stays, without a tenant."""
    count = "SELECT count(*) FROM faena.effects WHERE tenant = %s"
    return Rows(pg, "effects", change=_EFFECTS, count=count, rows=rows)


class Retrieved(Rows):
    """Requests for archives, and the files that answer them."""

    def __init__(self, pg: Postgres, rows: int) -> None:
        count = "SELECT count(*) FROM faena.retrievals WHERE tenant = %s AND state <> 'erased'"
        super().__init__(pg, "retrievals", change=_RETRIEVALS, count=count, rows=rows)

    async def erase(self, tenant: str, tally: Tally) -> None:
        """First nobody can find them, not even a job that still writes one; then files go."""
        await super().erase(tenant, tally)
        async with self._pg.transaction("erase") as connection:
            found = await connection.execute(
                "SELECT store, keys FROM faena.retrievals WHERE tenant = %s AND store IS NOT NULL",
                [tenant],
            )
            files = await found.fetchall()
        for store, keys in files:
            await self._pg.stores.at(store).delete(*keys)
