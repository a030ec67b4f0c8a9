"""The last hour of all queues, minute by minute, as pages draw them.

A minute that is over does not change, so it is read once, and after that only what is new: however
many pages are open, the broker is asked once in a few seconds, for all queues together.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from faena.telemetry.minutes_reader import last_minutes, shards_of_each
from faena.telemetry.statistics import QueueStatistics

if TYPE_CHECKING:
    from faena.app import Faena

_FRESH_S: Final = 5.0
_SHARDS_S: Final = 60.0
"""Shards come and go seldom."""

HOUR: Final = 60
"""The minutes that are kept."""


class Recent:
    """The recent statistics of an app's queues."""

    def __init__(self, app: Faena) -> None:
        self._app = app
        self._lock = asyncio.Lock()
        self._read_at = self._looked_at = float("-inf")
        self._last = 0
        """The minute that was under way."""
        self._shards: dict[str, list[str]] = {}
        self._minutes: dict[str, dict[int, QueueStatistics]] = {}

    async def all(self) -> Mapping[str, Sequence[QueueStatistics]]:
        """Queue → its last sixty minutes, the oldest first; the last one is under way."""
        async with self._lock:
            if time.monotonic() - self._read_at > _FRESH_S:
                await self._read()
        return {queue: [*minutes.values()] for queue, minutes in self._minutes.items()}

    async def _read(self) -> None:
        began, queues, runtime = time.monotonic(), [*self._app.queues], await self._app.runtime()
        is_new = queues != [*self._shards]
        if is_new or began - self._looked_at > _SHARDS_S:
            self._shards = await shards_of_each(runtime.engine, runtime.routers, queues)
            self._looked_at = began
        since = None if is_new or not self._last else self._last
        self._last, found = await last_minutes(runtime.engine, self._shards, since)
        self._minutes = {queue: self._kept(queue, points) for queue, points in found.items()}
        self._read_at = began

    def _kept(self, queue: str, points: Sequence[QueueStatistics]) -> dict[int, QueueStatistics]:
        kept = self._minutes.get(queue, {}) | {point.since: point for point in points}
        return {at: kept[at] for at in sorted(kept)[-HOUR:]}
