"""Tells by an event that ended jobs wait for too long to be stored, and when they do no more.

Which of the two was told last stands in the broker, so it is told once, whichever reader notices,
and also while PostgreSQL is away.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from faena.engine import Engine
from faena.engine.calls import pg as calls
from faena.engine.calls.history import HistoryCalls

_EVERY_S: Final = 5.0


class Lag:
    """Looks every few seconds how old the oldest entry of each shard is."""

    def __init__(self, engine: Engine, late_us: int) -> None:
        self._engine, self._late_s = engine, late_us / 1e6
        self._calls = HistoryCalls(engine)
        self._looked_at = -_EVERY_S

    async def run_once(self, shards: Sequence[str]) -> None:
        """Tell of a change, if it is time to look."""
        if time.monotonic() < self._looked_at + _EVERY_S:
            return
        self._looked_at = time.monotonic()
        for shard in shards:
            await self.look(shard)

    async def look(self, shard: str) -> None:
        """Tell of a change at one shard."""
        backlog = await self._calls.backlog(shard)
        is_late = backlog.oldest_s is not None and backlog.oldest_s >= self._late_s
        if await self._calls.note_late(shard, is_late=is_late):
            why = f"{backlog.entries} entries wait, the oldest for {backlog.oldest_s or 0:.0f} s"
            event = "history_late" if is_late else "history_on_time"
            await calls.tell(self._engine, event, shard, why if is_late else "")
