"""Detects handlers that block the event loop, while they do.

Runs in the heartbeat's thread, because nothing on a blocked loop can. While handlers run, it asks
the loop for an answer. If none comes for a second, it finds the task that the loop is in. When the
answer comes, it logs how long that task has blocked the others.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final, NamedTuple

_EVERY_S: Final = 0.25
_LEAST_S: Final = 1.0
"""A loop that was blocked for less is not logged."""
_STILL_S: Final = 10.0
"""One that is blocked for longer is logged before that ends."""
_QUIET_S: Final = 60.0
"""The least time between two log lines about the same task."""

_log = logging.getLogger("faena.worker")


class Blocker(NamedTuple):
    """The task that blocks the loop, and where."""

    task: str | None
    """None if it is not a handler, but a middleware or another part of the program."""
    location: str


class BlockedLoop:
    """Watches the event loop of one worker."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        find: Callable[[object], Blocker | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`find` tells which handler an asyncio task runs; it returns None if no handler runs."""
        self._loop = loop
        self._find = find
        self._clock = clock
        self._asked_at: float | None = None
        self._answered_at: float | None = None
        self._blocker: Blocker | None = None
        self._told_at: dict[str | None, float] = {}

    async def watch(self) -> None:
        """Check until cancelled."""
        while not self._loop.is_closed():
            self.look()
            await asyncio.sleep(_EVERY_S)

    def look(self) -> None:
        """Check once; must not be called in the loop's own thread."""
        if self._asked_at is None:
            self._asked_at, self._answered_at, self._blocker = self._clock(), None, None
            self._loop.call_soon_threadsafe(self._answer)
            return
        until = self._answered_at or self._clock()
        lasted_s = until - self._asked_at
        if self._answered_at is None and self._blocker is None and lasted_s >= _LEAST_S:
            self._blocker = self._find(asyncio.current_task(self._loop))
        if self._blocker is not None and (self._answered_at is not None or lasted_s >= _STILL_S):
            self._log_stall(self._blocker, lasted_s)
        if self._answered_at is not None:
            self._asked_at = None

    def _answer(self) -> None:
        self._answered_at = self._clock()

    def _log_stall(self, blocker: Blocker, lasted_s: float) -> None:
        now = self._clock()
        if now - self._told_at.get(blocker.task, -_QUIET_S) < _QUIET_S:
            return
        self._told_at[blocker.task] = now
        who = f"the handler of task {blocker.task}" if blocker.task else "code outside handlers"
        _log.warning(
            "%s blocked the event loop, and every other job of this process, for %.1f s in %s: "
            "make it a plain def, or await",
            who,
            lasted_s,
            blocker.location,
            extra={"task": blocker.task, "blocked_s": round(lasted_s, 3)},
        )
