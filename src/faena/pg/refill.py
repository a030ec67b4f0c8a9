"""Finds out that the broker has lost data, and has the outbox sent again.

A server that was restarted or replaced has another run id; one that was emptied lacks the mark that
is left in each shard. Either way, jobs may be missing. Rows whose jobs the broker does not know,
and whose settlement it has not told, become pending again: the relay sends them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from faena.engine import Engine
from faena.pg.postgres import Connection, Postgres
from faena.pg.settlement import Settlements
from faena.sharding.consistent_read import in_sight

_EVERY_S: Final = 5.0
_PAGE: Final = 500

_log = logging.getLogger("faena.pg")


class _Shards(NamedTuple):
    """Where the jobs of a queue are."""

    queue: str
    names: tuple[str, ...]
    is_moving: bool


class Refill:
    """Looks every few seconds whether the broker is still the one that jobs were sent to."""

    def __init__(
        self, pg: Postgres, engine: Engine, settlements: Settlements, recipient: str
    ) -> None:
        self._pg, self._engine, self._settlements = pg, engine, settlements
        self._recipient = recipient
        self._looked_at = -_EVERY_S

    async def run_once(self) -> int:
        """Make rows pending whose jobs are lost; returns how many."""
        if time.monotonic() < self._looked_at + _EVERY_S:
            return 0
        shards = await self._shards()
        run_ids = " ".join(
            sorted({await self._run_id(one) for each in shards for one in each.names})
        )
        emptied = [one for each in shards for one in each.names if not await self._is_marked(one)]
        if not emptied and run_ids == await self._known():
            self._looked_at = time.monotonic()
            return 0
        if any(one.is_moving for one in shards):
            return 0  # a job on its way between shards is in none of them for a moment
        lost = await self._look(shards)
        for shard in emptied:
            await self._engine.command("HSET", shard, "received", self._recipient, "0-0")
        await self._remember(run_ids)
        self._looked_at = time.monotonic()
        if lost:
            _log.warning("the broker has lost %d jobs of the outbox: they are sent again", lost)
        return lost

    async def _shards(self) -> list[_Shards]:
        routers = (await self._pg.app.runtime()).routers
        found: list[_Shards] = []
        for name, queue in self._pg.app.queues.items():
            if not queue.is_remote:
                sight = await in_sight(routers.of(name))
                found.append(_Shards(name, sight.shards, sight.is_moving))
        return found

    async def _run_id(self, shard: str) -> str:
        lines = (await self._engine.info(shard, "server")).decode().splitlines()
        return next((one[7:] for one in lines if one.startswith("run_id:")), "")

    async def _is_marked(self, shard: str) -> bool:
        found = await self._engine.command("HEXISTS", shard, "received", self._recipient)
        return bool(found)

    async def _known(self) -> str:
        async with self._pg.transaction("refill") as connection:
            found = await connection.execute("SELECT broker FROM faena.identity")
            row = await found.fetchone()
            return str(row[0] or "") if row else ""

    async def _remember(self, run_ids: str) -> None:
        async with self._pg.transaction("refill") as connection:
            await connection.execute("UPDATE faena.identity SET broker = %s", [run_ids])

    async def _look(self, shards: Sequence[_Shards]) -> int:
        """Page through all that was sent before now."""
        await self._settlements.sweep()
        lost = 0
        for one in shards:
            after = 0
            while True:
                async with self._pg.transaction("refill") as connection:
                    rows = await _sent(connection, one.queue, after)
                    missing = await self._missing(one, [job for _, job in rows])
                    gone = [number for number, job in rows if job in missing]
                    await connection.execute(
                        "UPDATE faena.outbox SET sent_at = NULL WHERE number = ANY(%s)", [gone]
                    )
                lost += len(gone)
                if len(rows) < _PAGE:
                    break
                after = rows[-1][0]
        return lost

    async def _missing(self, where: _Shards, ids: Sequence[str]) -> set[str]:
        missing = {*ids}
        for shard in where.names:
            if missing:
                asked = sorted(missing)
                flat = await self._engine.ask("briefs", shard, *asked)
                missing -= {job for job, task in zip(asked, flat[::2], strict=True) if task}
        return missing


_SENT: Final = f"""
    SELECT number, id FROM faena.outbox
    WHERE sent_at IS NOT NULL AND queue = %s AND number > %s
    ORDER BY number LIMIT {_PAGE} FOR UPDATE SKIP LOCKED
"""  # noqa: S608 - constants


async def _sent(connection: Connection, queue: str, after: int) -> list[tuple[int, str]]:
    found = await connection.execute(_SENT.encode(), [queue, after])
    return [(number, job) for number, job in await found.fetchall()]
