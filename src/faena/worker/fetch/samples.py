"""Histograms of how long jobs waited and ran, collected between two exchanges.

The buckets are powers of two, in microseconds.
"""

from __future__ import annotations

from faena.engine.envelope import is_chained
from faena.engine.scripts import Exchanged
from faena.options import QueueOptions

_BUCKETS = 64
_EVERY_S = 1.0
_NO_SPEC = b"000\n"


class Samples:
    """Counters that an exchange adds to the queue's statistics per minute."""

    def __init__(self, options: QueueOptions) -> None:
        self._step_us, self._boost = options.age_step_us, options.retry_boost
        self._waits = [0] * _BUCKETS
        self._runs = [0] * _BUCKETS
        self._taken_at = 0.0

    def claimed(self, exchanged: Exchanged) -> None:
        """Count how long each job was ready until its claim.

        The time it became ready is its score without the parts of priority and attempts.
        """
        counts, until, step_us = self._waits, exchanged.claimed_at, self._step_us
        for claim in exchanged.claimed:
            spec, steps = claim.spec or _NO_SPEC, 0
            if spec[3] == 10 or not is_chained(spec):
                steps = (claim.priority or int(spec[:3])) - self._boost * claim.attempts
            us = until - int(claim.score - steps * step_us)
            counts[us.bit_length() if us > 0 else 0] += 1

    def ran(self, us: int) -> None:
        """Count the duration of an attempt."""
        self._runs[us.bit_length()] += 1

    def take(self, now: float) -> dict[str, int] | None:
        """Return and reset the counters by name (`wait:17`, `run:4`), at most once a second."""
        if now - self._taken_at < _EVERY_S:
            return None
        self._taken_at = now
        taken = {
            f"{name}:{bucket}": number
            for name, counts in (("wait", self._waits), ("run", self._runs))
            for bucket, number in enumerate(counts)
            if number
        }
        self._waits, self._runs = [0] * _BUCKETS, [0] * _BUCKETS
        return taken
