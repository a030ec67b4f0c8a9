"""How fast a number may send: so many messages a second, and so many to one recipient."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from apps.sandbox.whatsapp.graph_error import Refused


@dataclass(slots=True, kw_only=True)
class Rate:
    """Counts what was taken; what is refused does not count."""

    per_second: int = 80
    pair_interval_s: float = 6.0
    """One recipient gets a message in so many seconds, in the long run; 0: as many as come."""
    pair_burst: int = 45
    """How many may be borrowed from what comes later."""
    _taken: deque[float] = field(default_factory=deque[float])
    _paid_until: dict[str, float] = field(default_factory=dict[str, float])

    def take(self, recipient: str, now: float) -> None:
        """Count a message, or refuse it."""
        while self._taken and self._taken[0] <= now - 1:
            self._taken.popleft()
        if len(self._taken) >= self.per_second:
            raise Refused(130429, "Cloud API message throughput has been reached.")
        paid_until = max(self._paid_until.get(recipient, now), now) + self.pair_interval_s
        if paid_until - now > self.pair_interval_s * self.pair_burst:
            raise Refused(131056, "too many messages to the same phone number")
        self._taken.append(now)
        self._paid_until[recipient] = paid_until
