"""Which jobs of a queue start sooner: those with a lower number.

A priority is any whole number from 1 to 100; five levels have names. A waiting job gains one step
per `age_step`, so a job of low priority starts later but never starves.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from faena.errors import ConfigError, nearest, shown
from faena.values.numbers import check_whole

HIGHEST: Final = 1
LOWEST: Final = 100


class Priority(IntEnum):
    """The named levels."""

    CRITICAL = 1
    """The health of the system itself, such as recovery after an outage."""

    HIGH = 5
    """Payments, and duties with a deadline."""

    NORMAL = 10
    """The ordinary work of the service."""

    LOW = 20
    """Maintenance in the background."""

    BULK = 50
    """Imports and other bulk work without hurry."""


PRIORITY_TIMEOUT_US: Final[Mapping[Priority, int]] = MappingProxyType(
    {
        Priority.CRITICAL: 300_000_000,
        Priority.HIGH: 120_000_000,
        Priority.NORMAL: 60_000_000,
        Priority.LOW: 30_000_000,
        Priority.BULK: 600_000_000,
    }
)
"""The timeout of one attempt if neither task nor queue sets one: 5m, 2m, 1m, 30s, 10m."""


def priority_of(value: Any) -> int:
    """The number of a priority given as a number, a level or a level's name."""
    if isinstance(value, str):
        return _named(value)
    return check_whole("priority", value, least=HIGHEST, most=LOWEST)


@cache  # called for every job without a timeout
def default_timeout_us(priority: int) -> int:
    """The timeout of the nearest level at or below the number: 7 counts as HIGH."""
    number = priority_of(priority)
    return PRIORITY_TIMEOUT_US[max(level for level in Priority if level <= number)]


def _named(name: str) -> int:
    level = Priority.__members__.get(name.upper())
    if level is not None:
        return int(level)
    names = [level.name.lower() for level in Priority]
    raise ConfigError(
        f"priority must be {HIGHEST} to {LOWEST} or a level's name, got {shown(name)}; "
        f"{nearest(name.lower(), names)}",
        field="priority",
        value=name,
    )
