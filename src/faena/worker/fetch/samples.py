"""What a worker saw between two exchanges: how long jobs waited and ran, and how many it parked.

Times are counted in buckets of powers of two microseconds.
"""

from __future__ import annotations

from faena.engine import envelope
from faena.engine.scripts import Claim, Exchanged
from faena.options import QueueOptions

_BUCKETS = 64
_EVERY_S = 1.0


class Samples:
    """Counters that an exchange carries to the queue's minute statistics."""

    def __init__(self, options: QueueOptions) -> None:
        self._step_us, self._boost = options.age_step_us, options.retry_boost
        self.parked = 0
        """Jobs put off because no handler here knows their task, or only an older version of it."""
        self._waits = [0] * _BUCKETS
        self._runs = [0] * _BUCKETS
        self._taken_at = 0.0

    def claimed(self, exchanged: Exchanged) -> None:
        """Count how long each job was ready, until it was claimed: from its score without what
        priority and attempts are worth."""
        counts, until = self._waits, exchanged.claimed_at
        for claim in exchanged.claimed:
            us = until - int(claim.score - self._steps(claim) * self._step_us)
            counts[max(0, us).bit_length()] += 1

    def _steps(self, claim: Claim) -> int:
        """What a job's score has for its priority and its attempts."""
        spec = claim.spec or b"000\n"
        if spec[3] != 10 and envelope.is_chained(spec):
            return 0
        priority = claim.priority or envelope.priority_of(spec)
        return priority - self._boost * claim.attempts

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
