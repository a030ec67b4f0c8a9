"""Time limits of running attempts: the timeout, and the time to end after it.

    timeout                    the handler is told to stop
    timeout + _STUCK_AFTER_S   the job is settled without its handler

The second limit applies whatever the reason for the stop was.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence

from faena.worker.execute.attempt_state import Attempt

_STUCK_AFTER_S = 5.0
"""How long a handler may run after it was told to stop, before its job is settled without it."""

_log = logging.getLogger("faena.worker")


class TimeLimits:
    """The timers of an executor's attempts."""

    def __init__(
        self,
        running: Mapping[str, Attempt],
        *,
        on_timeout: Callable[[Attempt], None],
        on_stuck: Callable[[Attempt], None],
    ) -> None:
        """`on_stuck` is called for a handler that runs on after it was told to stop."""
        self._running = running
        self._on_timeout = on_timeout
        self._on_stuck = on_stuck

    def set(self, begun: Sequence[Attempt]) -> None:
        """Set time limits, only for jobs that did not end immediately: short jobs need no timer."""
        loop = asyncio.get_running_loop()
        for attempt in begun:
            if attempt.claim.id in self._running:
                attempt.timer = loop.call_later(attempt.timeout_s, self._expire, attempt)

    def restart(self, attempt: Attempt, timeout_s: float) -> None:
        """Start the time limit again, from now."""
        attempt.disarm()
        attempt.started, attempt.timeout_s = time.monotonic(), timeout_s
        self.set([attempt])

    def expect_end(self, attempt: Attempt) -> None:
        """Settle the job without its handler, if that does not stop in time."""
        if self._running.get(attempt.claim.id) is attempt:
            attempt.disarm()
            loop = asyncio.get_running_loop()
            attempt.timer = loop.call_later(_STUCK_AFTER_S, self._abandon, attempt)

    def _expire(self, attempt: Attempt) -> None:
        attempt.timer = None
        self._on_timeout(attempt)

    def _abandon(self, attempt: Attempt) -> None:
        _log.error(
            "job %s (%s) was told to stop and still runs; its slot is taken until it ends",
            attempt.claim.id,
            attempt.handler.name,
        )
        attempt.job.detach()
        self._on_stuck(attempt)
