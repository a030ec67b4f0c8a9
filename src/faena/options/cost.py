"""Estimates of what a job costs, by unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from faena.errors import ConfigError, shown
from faena.limits import check_unit
from faena.values.numbers import check_whole

MOST_COST: Final = 1_000_000_000
NO_COSTS: Final[Mapping[str, int]] = {}


def estimates(given: Any) -> Mapping[str, int]:
    """The estimates, checked: 1 to 1,000,000,000 of each unit."""
    if not isinstance(given, Mapping):
        raise ConfigError(
            f'cost must map units to numbers, such as {{"tokens": 1200}}, got {shown(given)}',
            field="cost",
            value=given,
        )
    return {
        check_unit(unit): check_whole(f"cost of {unit}", number, least=1, most=MOST_COST)
        for unit, number in given.items()
    }
