"""What a worker saw between two exchanges: how long jobs waited and ran, and how many it parked.

Times are counted in buckets of powers of two microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable

_BUCKETS = 64
_EVERY_S = 1.0


class Samples:
    """Counters that an exchange carries to the queue's minute statistics."""

    def __init__(self) -> None:
        self.parked = 0
        """Jobs put off because no handler here knows their task, or only an older version of it."""
        self._waits = [0] * _BUCKETS
        self._runs = [0] * _BUCKETS
        self._taken_at = 0.0

    def waited(self, waits: Iterable[int]) -> None:
        """Jobs were ready for so long before they were claimed."""
        counts = self._waits
        for us in waits:
            counts[us.bit_length()] += 1

    def ran(self, us: int) -> None:
        """An attempt took so long."""
        self._runs[us.bit_length()] += 1

    def take(self, now: float) -> dict[str, int] | None:
        """What was gathered, by counter name (`wait:17`, `run:4`, `parked`), and start anew.

        Once a second; what was parked is told with the settlement that parks it.
        """
        if now - self._taken_at < _EVERY_S and not self.parked:
            return None
        self._taken_at = now
        taken = {
            f"{name}:{bucket}": number
            for name, counts in (("wait", self._waits), ("run", self._runs))
            for bucket, number in enumerate(counts)
            if number
        }
        self._waits, self._runs = [0] * _BUCKETS, [0] * _BUCKETS
        if self.parked:
            taken["parked"], self.parked = self.parked, 0
        return taken
