"""The history of jobs, where the app keeps one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from faena.pg.erasure.place import Found

if TYPE_CHECKING:
    from faena.pg.erasure.record import Tally
    from faena.pg.postgres import Postgres


class Past:
    """Rows of the history; it refuses what comes late by itself."""

    name = "history"

    def __init__(self, pg: Postgres) -> None:
        self._pg = pg

    async def count(self, tenant: str) -> Found:
        """What is stored."""
        async with self._pg.transaction("erase") as connection:
            found = await connection.execute(
                "SELECT count(*) FROM faena.history WHERE tenant = %s", [tenant]
            )
            row = await found.fetchone()
        return Found(row[0] if row else 0)

    async def erase(self, tenant: str, tally: Tally) -> None:
        """Also what still waits in the broker, such as the removals of this erasure."""
        await tally.note(self.name, await self._pg.history.erase(tenant=tenant))
