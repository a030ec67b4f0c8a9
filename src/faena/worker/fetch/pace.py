"""A limit on what this one worker process claims (`WORKER_RATE_LIMIT_MAX` per `_DURATION`).

A queue's own limits are exact across all workers and live on the server; this one is the worker's
private brake.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable

_UNBOUNDED = 1_000_000


class Pace:
    """At most `most` claims in any `per_s` seconds; without `most`, no limit."""

    def __init__(
        self,
        most: int | None = None,
        per_s: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = most
        self._per_s = per_s
        self._clock = clock
        self._spent: deque[tuple[float, int]] = deque()
        self._used = 0
        self._reserved = 0

    def room(self) -> int:
        """Claims that may be asked for now: neither made in the last window nor on their way."""
        if self._most is None:
            return _UNBOUNDED
        oldest = self._clock() - self._per_s
        while self._spent and self._spent[0][0] <= oldest:
            self._used -= self._spent.popleft()[1]
        return max(0, self._most - self._used - self._reserved)

    def wait_s(self) -> float:
        """Seconds until a claim made leaves the window; infinite when none was."""
        if not self._spent:
            return math.inf
        return max(0.0, self._spent[0][0] + self._per_s - self._clock())

    def reserve(self, number: int) -> None:
        """Count claims that are being asked for."""
        self._reserved += number

    def settle(self, reserved: int, made: int) -> None:
        """The answer is here: so many of the reserved claims were made."""
        self._reserved -= reserved
        if self._most is not None and made:
            self._spent.append((self._clock(), made))
            self._used += made
