"""A limit on what this one worker process claims (`WORKER_RATE_LIMIT_MAX` per `_DURATION`).

The limits of a queue are on the server, and exact across all workers. This one applies to one
process only.
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
        """How many claims may be requested now, less those in the window and those in flight."""
        if self._most is None:
            return _UNBOUNDED
        oldest = self._clock() - self._per_s
        while self._spent and self._spent[0][0] <= oldest:
            self._used -= self._spent.popleft()[1]
        return max(0, self._most - self._used - self._reserved)

    def wait_s(self) -> float:
        """Seconds until the oldest claim leaves the window; infinite when there is none."""
        if not self._spent:
            return math.inf
        return max(0.0, self._spent[0][0] + self._per_s - self._clock())

    def reserve(self, number: int) -> None:
        """Count claims that are being requested."""
        self._reserved += number

    def settle(self, reserved: int, made: int) -> None:
        """Replace reserved claims by the number that was made."""
        self._reserved -= reserved
        if self._most is not None and made:
            self._spent.append((self._clock(), made))
            self._used += made
