"""Takes the history of all shards from the broker into PostgreSQL.

    read      the oldest entries of a shard
    store     in one transaction; one reader at a time for each shard
    strike    the entries off, by their ids, when that has committed

A reader that dies after the commit leaves entries that are there already; the next one stores none
of them again (`store.py`). One that comes back from a pause finds its rows stored, and strikes off
entries that are gone. While PostgreSQL is away, entries wait in the broker.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from datetime import date
from typing import Final

from psycopg import errors as pg_errors

from faena.engine import Engine
from faena.engine.calls import pg as calls
from faena.engine.calls.history import READ_AT_ONCE, Entry, Gap, HistoryCalls
from faena.engine.calls.transfer import TransferCalls
from faena.errors import FaenaError
from faena.pg.history.lag import Lag
from faena.pg.history.option import History
from faena.pg.history.partition import Keeper
from faena.pg.history.store import Store, instant
from faena.pg.postgres import Connection, Postgres
from faena.sharding.consistent_read import in_sight
from faena.values.shards import queue_of

_POLL_S: Final = 1.0
_LONGEST_WAIT_S: Final = 30.0
_FROZEN: Final = "15s"
"""How long a reader may be silent inside its transaction before the server ends it."""
_BEGIN: Final = """
    SELECT pg_try_advisory_xact_lock(hashtextextended('faena.history ' || named.shard, 0)),
        set_config('idle_in_transaction_session_timeout', named.frozen, true),
        set_config('synchronous_commit', CASE current_setting('synchronous_commit')
            WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true)
    FROM (SELECT %s AS frozen, %s AS shard) named
"""
"""The commit must be on disk before entries are struck off, whatever the server's settings are."""
_LOOK_BACK_S: Final = 30.0
_KNOWN: Final = """
    SELECT shard FROM faena.history_shards
    WHERE namespace = %s AND read_at > now() - interval '8 days'
"""

_log = logging.getLogger("faena.pg")


class HistoryReader:
    """The reader of one process."""

    def __init__(self, pg: Postgres, engine: Engine, options: History) -> None:
        self._pg, self.engine, self._options = pg, engine, options
        self._calls = HistoryCalls(engine)
        self._store = Store(options, engine.namespace)
        self._keeper = Keeper(pg, options)
        self._lag = Lag(engine, options.late_us)
        self._left: frozenset[str] = frozenset()
        """Shards that were read before, which a queue may have no more."""
        self._looked_at = -_LOOK_BACK_S

    async def run(self) -> None:
        """Read until cancelled, whatever fails."""
        wait_s = _POLL_S
        while True:
            try:
                shards = await self.shards()
                await self._lag.run_once(shards)
                await self._keeper.run_once()
                if time.monotonic() >= self._looked_at + _LOOK_BACK_S:
                    await self._look_back()
                await self._take_all(shards)
                wait_s = _POLL_S
            except FaenaError as error:
                _log.warning("the history is stored later: %s", error)
                wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
            await asyncio.sleep(wait_s)

    async def run_once(self) -> int:
        """Take in what has ended before now, at all shards; returns how many entries."""
        await self._look_back()
        return await self._take_all(await self.shards())

    async def _take_all(self, shards: Sequence[str]) -> int:
        return sum([await self.take(shard) for shard in shards])

    async def shards(self) -> list[str]:
        """Those of queues with a history, those given up lately, and what was read before."""
        transfer, routers = TransferCalls(self.engine), (await self._pg.app.runtime()).routers
        own = [name for name, queue in self._pg.app.queues.items() if not queue.is_remote]
        found: dict[str, None] = {}
        for name in own:
            if self._options.queues is None or name in self._options.queues:
                found |= dict.fromkeys((await in_sight(routers.of(name))).shards)
                found |= dict.fromkeys(await transfer.retired(name))
        return [*(found | dict.fromkeys(one for one in self._left if queue_of(one) in own))]

    async def time_us(self) -> int:
        """The broker's clock: the latest, where it has several."""
        queues = [name for name, one in self._pg.app.queues.items() if not one.is_remote]
        return max([(await self.engine.overview(queue)).at for queue in queues], default=0)

    async def _look_back(self) -> None:
        async with self._pg.transaction("history") as connection:
            found = await connection.execute(_KNOWN.encode(), [self.engine.namespace])
            self._left = frozenset(shard for (shard,) in await found.fetchall())
        self._looked_at = time.monotonic()

    async def take(self, shard: str) -> int:
        """Take in one shard until it is empty, or another reader has it; returns the entries."""
        total = 0
        while await self._calls.is_any(shard):
            entries = await self._stored(shard)
            if not entries:
                break
            total += len(entries)
            left = await self._calls.done(shard, [one.id for one in entries])
            if len(entries) < READ_AT_ONCE and left < READ_AT_ONCE:
                break  # what came meanwhile is taken together with what follows
        return total

    async def _stored(self, shard: str) -> Sequence[Entry]:
        """The oldest entries, which are stored; none if another reader works on the shard."""
        try:
            entries, gaps = await self._put(shard)
        except _NoPartition as error:
            await self._keeper.ensure(since=error.since)
            entries, gaps = await self._put(shard)
        for gap in gaps:
            why = f"{gap.jobs} jobs that ended from {instant(gap.since)} to {instant(gap.until)}"
            _log.warning("the history of %s lacks %s", shard, why)
            await calls.tell(self.engine, "history_gap", shard, why)
        return entries

    async def _put(self, shard: str) -> tuple[Sequence[Entry], Sequence[Gap]]:
        """Store the oldest entries in one transaction; returns them, and new gaps."""
        async with self._pg.transaction("history") as connection:
            if not await self._is_alone(connection, shard):
                return [], []
            entries = await self._calls.read(shard)
            if not entries:
                return [], []
            try:
                return entries, await self._store.put(connection, shard, entries)
            except pg_errors.CheckViolation:
                raise _NoPartition(_oldest(entries)) from None

    async def _is_alone(self, connection: Connection, shard: str) -> bool:
        found = await connection.execute(_BEGIN, [_FROZEN, f"{self.engine.namespace} {shard}"])
        row = await found.fetchone()
        return bool(row and row[0])


class _NoPartition(Exception):
    """Rows from a day on have no partition."""

    def __init__(self, since: date | None) -> None:
        super().__init__(f"no partition since {since}")
        self.since = since


def _oldest(entries: Sequence[Entry]) -> date | None:
    times = [one.finished_at for entry in entries for one in entry.finishings]
    return instant(min(times)).date() if times else None
