"""Notices handlers that block the event loop, while they do.

Runs in the heartbeat's thread, for nobody on a blocked loop can. It asks the loop for an answer
while handlers run; when none comes for a second it looks which task the loop is in, and when the
answer has come it tells for how long that one kept all others waiting.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final, NamedTuple

_EVERY_S: Final = 0.25
_LEAST_S: Final = 1.0
"""Shorter waits are not told of."""
_STILL_S: Final = 10.0
"""What lasts longer is told of before it ends."""
_QUIET_S: Final = 60.0
"""How long nothing more is said of the same task."""

_log = logging.getLogger("faena.worker")


class Blocker(NamedTuple):
    """What keeps the loop."""

    task: str | None
    """None when no handler does: a middleware, or a part of the program."""
    location: str


class Stalls:
    """Watches the event loop of one worker."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        find: Callable[[object], Blocker | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`find` says what a task of the loop is doing; None when there is no handler at all."""
        self._loop = loop
        self._find = find
        self._clock = clock
        self._asked_at: float | None = None
        self._answered_at: float | None = None
        self._blocker: Blocker | None = None
        self._told_at: dict[str | None, float] = {}

    async def watch(self) -> None:
        """Look until cancelled."""
        while not self._loop.is_closed():
            self.look()
            await asyncio.sleep(_EVERY_S)

    def look(self) -> None:
        """One look; called in any thread but the loop's own."""
        if self._asked_at is None:
            self._asked_at, self._answered_at, self._blocker = self._clock(), None, None
            self._loop.call_soon_threadsafe(self._answer)
            return
        until = self._answered_at or self._clock()
        lasted_s = until - self._asked_at
        if self._answered_at is None and self._blocker is None and lasted_s >= _LEAST_S:
            self._blocker = self._find(asyncio.current_task(self._loop))
        if self._blocker is not None and (self._answered_at is not None or lasted_s >= _STILL_S):
            self._tell(self._blocker, lasted_s)
        if self._answered_at is not None:
            self._asked_at = None

    def _answer(self) -> None:
        self._answered_at = self._clock()

    def _tell(self, blocker: Blocker, lasted_s: float) -> None:
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
