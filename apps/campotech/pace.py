"""Time that passes faster: a business day in minutes, for the demo and for load tests.

Everything that is a time of the business is divided by the speed: windows of limits, pauses between
attempts, open times of breakers, delays of reminders. Time limits of handlers and leases are not:
computers do not work faster.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from faena import Limit

_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_LEAST: Final = timedelta(milliseconds=1)
_SHORTEST: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Pace:
    """How much faster than real time it goes."""

    speed: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what would make no sense."""
        if not 1 <= self.speed <= 10_000:
            raise ValueError(f"speed must be from 1 to 10000, got {self.speed:g}")

    def of(self, given: str | timedelta) -> timedelta:
        """A duration at this speed, such as that of "30s"."""
        return max(_LEAST, seconds(given) / self.speed)

    def interval(self, given: str | timedelta) -> timedelta:
        """How often something is done at this speed; a schedule does it once a second at most."""
        return max(_SHORTEST, self.of(given))

    def limit(self, rate: str) -> Limit:
        """A rate at this speed, such as that of "10/min"."""
        limit = Limit(rate)
        return Limit(max=limit.max, per=self.of(timedelta(microseconds=limit.per_us)))


def seconds(given: str | timedelta) -> timedelta:
    """A duration, also from words such as "2m" or "1h30m"."""
    if isinstance(given, timedelta):
        return given
    parts = _PART.findall(given)
    if not parts or "".join(number + unit for number, unit in parts) != given:
        raise ValueError(f"a duration must be written as '90s', '5m' or '24h', got {given!r}")
    return timedelta(seconds=sum(float(number) * _SECONDS[unit] for number, unit in parts))
