"""The time that a test's broker lives in."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from faena.errors import ConfigError
from faena.values.duration import Duration, to_us

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock:
    """Stands still until it is moved, and moves forward only.

    Delays, retries, limits, holds and retention obey it. Handlers' time limits and the expiry of
    idempotency records do not: those are real time.
    """

    def __init__(self, start: datetime | None = None) -> None:
        """`start` is where it stands, now by default; without a zone it is read as UTC."""
        self._now_us = _us(start) if start is not None else time.time_ns() // 1_000

    def __call__(self) -> int:
        """Microseconds since 1970, as the engine asks for them."""
        return self._now_us

    @property
    def now(self) -> datetime:
        """Where the clock stands."""
        return _EPOCH + timedelta(microseconds=self._now_us)

    def advance(self, by: Duration) -> None:
        """Let this much time pass."""
        self._now_us += to_us("by", by)

    def advance_to(self, at: datetime | int) -> None:
        """Go to an instant: a datetime, or microseconds since 1970."""
        target = _us(at) if isinstance(at, datetime) else at
        if target < self._now_us:
            raise ConfigError(
                f"at must not be before the clock's {self.now.isoformat()}, got {at}",
                field="at",
                value=at,
            )
        self._now_us = target

    def __repr__(self) -> str:
        return f"<Clock {self.now.isoformat()}>"


def _us(instant: datetime) -> int:
    aware = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)
