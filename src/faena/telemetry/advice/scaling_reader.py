"""Reads the signal for autoscalers: a snapshot, and the last minutes of each queue."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from faena.engine import Engine
from faena.options import Order, QueueOptions
from faena.sharding.router import Routers
from faena.telemetry.advice.judgement import Capacity
from faena.telemetry.advice.scaling import HORIZON_S, QueueScaling, scaling_of
from faena.telemetry.snapshot import QueueSnapshot, Snapshot
from faena.telemetry.statistics import QueueStatistics
from faena.telemetry.statistics_reader import reader_of

_KEPT_S: Final = 10.0
"""How long the last minutes of a queue are not read again."""


class ScalingReader:
    """Reads all queues of an app; what waits and runs is of the snapshot it is given."""

    def __init__(
        self, engine: Engine, routers: Routers, options: Callable[[str], QueueOptions]
    ) -> None:
        self._engine, self._routers, self._options = engine, routers, options
        self._recent: dict[str, tuple[float, QueueStatistics]] = {}

    async def read(self, seen: Snapshot) -> tuple[QueueScaling, ...]:
        """The signal of each queue of a snapshot."""
        return tuple(await asyncio.gather(*(self._queue(one) for one in seen.queues)))

    async def _queue(self, seen: QueueSnapshot) -> QueueScaling:
        options = self._options(seen.queue)
        capacity = Capacity(
            concurrency=options.concurrency,
            objective_us=options.objective_us,
            max_running=1 if options.order is Order.QUEUE else options.max_running,
            limits=options.limits,
            is_ordered=options.order is not Order.NONE,
        )
        return scaling_of(seen, await self._recently(seen.queue), capacity)

    async def _recently(self, queue: str) -> QueueStatistics:
        at, found = self._recent.get(queue, (-_KEPT_S, None))
        if found is None or time.monotonic() - at >= _KEPT_S:
            reader = await reader_of(self._engine, self._routers, queue)
            found = await reader.window(int(HORIZON_S * 1e6), None)
            self._recent[queue] = time.monotonic(), found
        return found
