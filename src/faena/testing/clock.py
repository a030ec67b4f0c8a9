"""The clock of a test's broker."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from faena.errors import ConfigError, shown
from faena.values.duration import Duration, to_us

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock:
    """A clock that only the test moves, and only forward.

    Delays, retries, limits, holds and retention use it. The timeouts of handlers and the expiry of
    idempotency records use real time.
    """

    def __init__(self, start: datetime | None = None) -> None:
        """`start` is the first time, now by default; without a time zone it is UTC."""
        self._now_us = _us(start) if start is not None else time.time_ns() // 1_000

    def __call__(self) -> int:
        """Microseconds since 1970, for the engine."""
        return self._now_us

    @property
    def now(self) -> datetime:
        """The time of the clock."""
        return _EPOCH + timedelta(microseconds=self._now_us)

    def advance(self, by: Duration) -> None:
        """Move the clock forward by this much."""
        if str(by).startswith("-"):  # a string, or a timedelta
            raise ConfigError(
                f"by must not be negative, got {shown(by)}: the clock only moves forward",
                field="by",
                value=by,
            )
        self._now_us += to_us("by", by)

    def advance_to(self, at: datetime | int) -> None:
        """Move the clock to an instant: a datetime, or microseconds since 1970."""
        target = _target_us(at)
        if target < self._now_us:
            raise ConfigError(
                f"at must not be before the clock's {self.now.isoformat()}, got {at}",
                field="at",
                value=at,
            )
        self._now_us = target

    def __repr__(self) -> str:
        return f"<Clock {self.now.isoformat()}>"


def _target_us(at: Any) -> int:
    if isinstance(at, datetime):
        return _us(at)
    if isinstance(at, int):
        return at
    raise ConfigError(
        f"at must be a datetime or microseconds since 1970, got {shown(at)}; "
        "advance takes a duration",
        field="at",
        value=at,
    )


def _us(instant: datetime) -> int:
    aware = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)
