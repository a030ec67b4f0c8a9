"""How soon a job is served among others of its queue: a lower number is sooner.

Any whole number from 1 to 100 is a priority; five levels have names. The engine lets every waiting
job gain one per `age_step`, so a low priority is later, never starved.
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
    """The health of the system itself, recovery from a panic."""

    HIGH = 5
    """Whatever earns money or is owed to an authority."""

    NORMAL = 10
    """The ordinary business of the service."""

    LOW = 20
    """Background upkeep."""

    BULK = 50
    """Imports and batches that may take their time."""


PRIORITY_TIMEOUT_US: Final[Mapping[Priority, int]] = MappingProxyType(
    {
        Priority.CRITICAL: 300_000_000,
        Priority.HIGH: 120_000_000,
        Priority.NORMAL: 60_000_000,
        Priority.LOW: 30_000_000,
        Priority.BULK: 600_000_000,
    }
)
"""How long one attempt may run when neither task nor queue says: 5m, 2m, 1m, 30s, 10m."""


def priority_of(value: Any, *, what: str = "priority") -> int:
    """The number of a priority given as a number, a level or a level's name."""
    if isinstance(value, str):
        return _named(what, value)
    return check_whole(what, value, least=HIGHEST, most=LOWEST)


@cache  # asked for every job that names no timeout
def default_timeout_us(priority: int) -> int:
    """The timeout of the nearest level at or below the number: 7 counts as HIGH."""
    number = priority_of(priority)
    return PRIORITY_TIMEOUT_US[max(level for level in Priority if level <= number)]


def _named(what: str, name: str) -> int:
    level = Priority.__members__.get(name.upper())
    if level is not None:
        return int(level)
    names = [level.name.lower() for level in Priority]
    raise ConfigError(
        f"{what} must be {HIGHEST} to {LOWEST} or a level's name, got {shown(name)}; "
        f"{nearest(name.lower(), names)}",
        field=what,
        value=name,
    )
