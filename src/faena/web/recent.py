"""The last hours of each queue, minute by minute, as pages draw them.

A minute that is over does not change, so it is read once, and after that only what is new: however
many pages are open, the broker is asked for a queue once in a few seconds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from faena.telemetry.statistics import QueueStatistics
from faena.values.duration import describe

if TYPE_CHECKING:
    from faena.app import Faena

_FRESH_S: Final = 5.0
_MINUTE_US: Final = 60_000_000
_AT_ONCE: Final = 8

HOUR: Final = 60
"""The minutes that are kept."""


class Recent:
    """The recent statistics of an app's queues."""

    def __init__(self, app: Faena) -> None:
        self._app = app
        self._queues: dict[str, _Minutes] = {}
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def of(self, queue: str) -> Sequence[QueueStatistics]:
        """The last sixty minutes, the oldest first; the last one is under way."""
        minutes = self._queues.setdefault(queue, _Minutes())
        async with minutes.lock:
            if time.monotonic() - minutes.read_at > _FRESH_S:
                async with self._room:
                    await self._read(queue, minutes)
        return [*minutes.points.values()]

    async def _read(self, queue: str, minutes: _Minutes) -> None:
        began = time.monotonic()
        missing = HOUR
        if minutes.points:
            missing = min(HOUR, int((began - minutes.read_at) // 60) + 2)
        window = describe(missing * _MINUTE_US)
        series = await self._app.queues[queue].series(window, step="1m")
        for point in series.points:
            minutes.points[point.since] = point
        for at in [*minutes.points][:-HOUR]:
            del minutes.points[at]
        minutes.read_at = began


class _Minutes:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.read_at = float("-inf")
        self.points: dict[int, QueueStatistics] = {}
