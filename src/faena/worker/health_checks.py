"""Checks that a worker makes progress: exchanges are answered, leases are renewed, memory is within
its limit. With `until_empty`, it also checks that there is still work.

It watches progress, not connectivity: connections that are open but give no answers are dropped as
soon as a new one does.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable

from faena.engine import Engine
from faena.engine.calls.flows import FlowCalls
from faena.errors import FaenaError, InternalError, StoreUnavailable
from faena.worker.fetch.fetchers import Fetchers
from faena.worker.fetch.shard_watcher import ShardWatcher
from faena.worker.heartbeat import Heartbeat
from faena.worker.progress import EVERY_S, Progress
from faena.worker.vitals import round_trip_ms

_REBUILT_S = 5.0
"""The least time between two times that all connections are dropped; doubled each time."""
_LONGEST_REBUILT_S = 60.0
_PROBE_S = 1.0
"""How long a new connection may take to answer."""
_NEARLY = 0.9
_SOONEST_S = 0.05
_LOOKS = 3
"""How often all shards must be found empty, in a row, before a worker with `until_empty` stops."""

_log = logging.getLogger("faena.worker")


class HealthChecks:
    """Checks one worker every second; with `until_empty`, more often at first."""

    def __init__(
        self,
        engine: Engine,
        fetchers: Fetchers,
        shard_watcher: ShardWatcher,
        *,
        sweep_s: Callable[[], float],
        on_over: Callable[[], None],
        memory_limit: int | None,
        until_empty: bool,
    ) -> None:
        """`on_over` is called when memory is over its limit, or when no work is left."""
        self._engine = engine
        self._calls = FlowCalls(engine)
        self._fetchers = fetchers
        self._by_shard = fetchers.fetchers
        self._shard_watcher = shard_watcher
        self._on_over = on_over
        self._memory_limit = memory_limit
        self._until_empty = until_empty
        self._began_at = self._rebuilt_at = time.monotonic()
        self._rebuild_after_s = _REBUILT_S
        self._looked_at = 0.0
        self.progress = Progress(fetchers.fetchers, sweep_s)
        self.is_over_memory = False

    async def run(self, heartbeat: Heartbeat) -> None:
        """Watch until cancelled; raises when leases are no longer renewed."""
        while True:
            await asyncio.sleep(self._pause_s())
            if not heartbeat.is_alive:
                raise InternalError("the heartbeat has ended: leases are no longer renewed")
            await self._watch_progress()
            self._watch_memory()
            if self._until_empty:
                with contextlib.suppress(StoreUnavailable):  # an outage is no reason to stop
                    await self._watch_work()

    def _pause_s(self) -> float:
        """With `until_empty`, a tenth of the worker's age: a short run is seen to end soon."""
        if not self._until_empty:
            return EVERY_S
        age_s = time.monotonic() - self._began_at
        return min(EVERY_S, max(_SOONEST_S, age_s / 10))

    async def _watch_progress(self) -> None:
        """Drop all connections if exchanges are not answered, and a new connection is.

        While the broker is out there is nothing to drop them for: each call tries again by itself.
        But a call that waits on a connection that has died silently would wait for seconds after
        the broker is back.
        """
        now = time.monotonic()
        if now - self._looked_at < EVERY_S * _NEARLY:
            return
        self._looked_at = now
        self.progress.look()
        waiting = self.progress.unanswered
        if waiting is None:
            self._rebuild_after_s = _REBUILT_S
        elif now - self._rebuilt_at > self._rebuild_after_s:
            with contextlib.suppress(FaenaError, OSError):
                await round_trip_ms(self._engine, _PROBE_S)
                await self._reconnect(waiting.seconds)

    async def _reconnect(self, waited_s: float) -> None:
        _log.error("no answer from the broker for %.0f s: reconnecting", waited_s)
        self._rebuilt_at = time.monotonic()
        self._rebuild_after_s = min(2 * self._rebuild_after_s, _LONGEST_REBUILT_S)
        await self._engine.wire.rebuild()
        self._fetchers.request_exchanges()

    def _watch_memory(self) -> None:
        limit = self._memory_limit
        if limit is not None and resident_bytes() > limit and not self.is_over_memory:
            _log.warning("memory is over the limit of %d bytes: stopping, to be restarted", limit)
            self.is_over_memory = True
            self._on_over()

    async def _watch_work(self) -> None:
        """Stop when all shards are found empty, and nothing was enqueued between the looks.

        Shards are asked one after the other, and jobs enqueue jobs: during one look, work may pass
        from a shard that is still to be asked to one that was asked. If no counter changes between
        two looks, no shard had a job at the instant between them. A message between shards may
        still become a job behind the second look; the third one finds it.
        """
        seen = await self._enqueued_if_empty()
        for _ in range(_LOOKS - 1) if seen is not None else ():
            if self._shard_watcher.is_needed:  # jobs may have moved to a new shard meanwhile
                await self._shard_watcher.look_everywhere()
            if await self._enqueued_if_empty() != seen:
                return
        if seen is not None:
            self._on_over()

    async def _enqueued_if_empty(self) -> dict[str, int] | None:
        """How many jobs each served shard ever had; None if one has live jobs or an outbox."""
        enqueued: dict[str, int] = {}
        for shard in [one.shard for one in self._by_shard.values() if not one.is_closing]:
            overview = await self._engine.overview(shard)
            if overview.live or await self._calls.has_outbox(shard):
                return None
            enqueued[shard] = overview.enqueued
        return enqueued


def resident_bytes() -> int:
    """This process's resident memory."""
    try:
        with open("/proc/self/statm", "rb") as statm:  # noqa: PTH123 - read every second, no Path
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource  # noqa: PLC0415 - only where there is no /proc

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
