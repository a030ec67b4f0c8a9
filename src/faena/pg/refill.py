"""Finds out that the broker has lost data, and has the outbox sent again.

A server that was restarted or replaced has another run id; one that was emptied lacks the mark that
is left in each shard. Either way, jobs may be missing. Rows whose jobs the broker does not know,
and whose settlement it has not told, become pending again: the relay sends them.

    note      in `faena.brokers`, for each queue: this look has begun
    mark      shards that lack it; one that is emptied from now on lacks it again
    look      page by page under the relay's lock: no row is being sent meanwhile
    sweep     jobs that are missing because they have just ended: their rows go
    note      the servers, if nobody else began a look, and no row was locked

Whatever dies or is lost in between, the next look finds another note, or no mark.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import uuid4

from faena.engine import Engine
from faena.pg.postgres import Postgres
from faena.pg.settlement import Settlements
from faena.sharding.consistent_read import in_sight

_EVERY_S: Final = 5.0
_PAGE: Final = 500
LOCK: Final = 122549820550008
"""The one that `faena.take` takes for a relay."""

_log = logging.getLogger("faena.pg")


class _Shards(NamedTuple):
    """Where the jobs of a queue are."""

    queue: str
    names: tuple[str, ...]
    is_moving: bool


class _Found(NamedTuple):
    """What a look has found."""

    lost: int
    is_over: bool


class _Page(NamedTuple):
    """Some rows, beside what the broker has."""

    missing: list[int]
    now: datetime
    """When they were looked at, by the database's clock."""
    last: int | None
    """None: there are no more."""


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
        lost, is_over, known = 0, True, await self._known()
        for one in await self._shards():
            servers = await self._servers(one)
            if servers == known.get(one.queue) and not await self._unmarked(one):
                continue
            found = await self._refill(one, servers)
            lost, is_over = lost + found.lost, is_over and found.is_over
        if is_over:
            self._looked_at = time.monotonic()
        if lost:
            _log.warning("the broker has lost %d jobs of the outbox: they are sent again", lost)
        return lost

    async def _refill(self, one: _Shards, servers: str) -> _Found:
        """Look at all that was sent before now."""
        if one.is_moving:  # a job on its way between shards is in none of them for a moment
            return _Found(0, is_over=False)
        look = f"looked at by {uuid4().hex}"
        await self._execute(_BEGIN, [self._pg.app.namespace, one.queue, look])
        for shard in await self._unmarked(one):
            await self._engine.command("HSET", shard, "received", self._recipient, "0-0")
        await self._settlements.sweep()
        lost, is_over = await self._look(one)
        if not is_over or await self._unmarked(one) or servers != await self._servers(one):
            return _Found(lost, is_over=False)
        ended = await self._execute(_END, [servers, self._pg.app.namespace, one.queue, look])
        return _Found(lost, is_over=ended == 1)

    # -- the broker -------------------------------------------------------------------------------

    async def _shards(self) -> list[_Shards]:
        routers = (await self._pg.app.runtime()).routers
        found: list[_Shards] = []
        for name, queue in self._pg.app.queues.items():
            if not queue.is_remote:
                sight = await in_sight(routers.of(name))
                found.append(_Shards(name, sight.shards, sight.is_moving))
        return found

    async def _servers(self, one: _Shards) -> str:
        """The run ids of the servers that have a queue."""
        return " ".join(sorted({await self._run_id(shard) for shard in one.names}))

    async def _run_id(self, shard: str) -> str:
        lines = (await self._engine.info(shard, "server")).decode().splitlines()
        return next((one[7:] for one in lines if one.startswith("run_id:")), "")

    async def _unmarked(self, one: _Shards) -> list[str]:
        asked = ("received", self._recipient)
        return [
            shard for shard in one.names if not await self._engine.command("HEXISTS", shard, *asked)
        ]

    async def _missing(self, where: _Shards, ids: Sequence[str]) -> set[str]:
        missing = {*ids}
        for shard in where.names:
            if missing:
                asked = sorted(missing)
                flat = await self._engine.ask("briefs", shard, *asked)
                missing -= {job for job, task in zip(asked, flat[::2], strict=True) if task}
        return missing

    # -- the database -----------------------------------------------------------------------------

    async def _known(self) -> dict[str, str]:
        async with self._pg.transaction("refill") as connection:
            found = await connection.execute(_KNOWN, [self._pg.app.namespace])
            return {str(queue): str(servers) for queue, servers in await found.fetchall()}

    async def _execute(self, statement: str, given: list[Any]) -> int:
        async with self._pg.transaction("refill") as connection:
            return (await connection.execute(statement.encode(), given)).rowcount

    async def _look(self, one: _Shards) -> _Found:
        """Page through the rows; it is not over while one is locked by somebody else."""
        lost, is_over, after = 0, True, 0
        while True:
            page = await self._page(one, after)
            if page.missing:
                await self._settlements.sweep()
                there, made = await self._lose(page)
                lost, is_over = lost + made, is_over and made == there
            if page.last is None:
                return _Found(lost, is_over=is_over)
            after = page.last

    async def _page(self, one: _Shards, after: int) -> _Page:
        """What the broker does not know. It may have ended since the last sweep."""
        async with self._pg.transaction("refill") as connection:
            ((*_, now),) = await (await connection.execute(_LOCK.encode())).fetchall()
            found = await connection.execute(_SENT.encode(), [one.queue, after])
            rows = await found.fetchall()
            missing = await self._missing(one, [job for _, job in rows])
        last = rows[-1][0] if len(rows) == _PAGE else None
        return _Page([number for number, job in rows if job in missing], now, last)

    async def _lose(self, page: _Page) -> tuple[int, int]:
        """Make rows pending that are still there; how many these are, and how many were not locked
        by somebody else. What a relay has sent again meanwhile is not lost."""
        async with self._pg.transaction("refill") as connection:
            await connection.execute(_LOCK.encode())
            found = await connection.execute(_THERE, [page.missing, page.now])
            there = [number for (number,) in await found.fetchall()]
            return len(there), (await connection.execute(_PENDING, [there])).rowcount


_KNOWN: Final = "SELECT queue, servers FROM faena.brokers WHERE namespace = %s"
_BEGIN: Final = """
    INSERT INTO faena.brokers (namespace, queue, servers) VALUES (%s, %s, %s)
    ON CONFLICT (namespace, queue) DO UPDATE SET servers = excluded.servers
"""
_END: Final = """
    UPDATE faena.brokers SET servers = %s WHERE namespace = %s AND queue = %s AND servers = %s
"""
_LOCK: Final = f"""
    SELECT set_config('lock_timeout', '20s', true),
        set_config('idle_in_transaction_session_timeout', '15s', true),
        pg_advisory_xact_lock({LOCK}), clock_timestamp()
"""
"""A relay that is frozen is ended within 15 s, and so is this."""
_SENT: Final = f"""
    SELECT number, id FROM faena.outbox
    WHERE sent_at IS NOT NULL AND queue = %s AND number > %s ORDER BY number LIMIT {_PAGE}
"""  # noqa: S608 - constants
_THERE: Final = "SELECT number FROM faena.outbox WHERE number = ANY(%s) AND sent_at <= %s"
_PENDING: Final = """
    UPDATE faena.outbox SET sent_at = NULL WHERE number IN (
        SELECT number FROM faena.outbox WHERE number = ANY(%s) FOR UPDATE SKIP LOCKED)
"""
