"""Rates that a queue or a tenant must not exceed.

No window of length `per`, wherever it starts, may contain more than `max` claims, or claims that
cost more than `max` of a unit. This module parses, checks and formats limits; the engine's scripts
enforce them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, overload

from faena.errors import ConfigError, shown
from faena.values.duration import Duration, describe, to_us
from faena.values.numbers import check_whole

_MOST: Final = 1_000_000_000
_SHORTEST_US: Final = 1_000
_RATE: Final = re.compile(r"([0-9]{1,12}) ?/ ?([0-9a-z]+)")
_UNIT: Final = re.compile(r"[a-z][a-z0-9_]{0,31}")
_WINDOWS: Final = {
    "s": "1s", "sec": "1s", "second": "1s",
    "m": "1m", "min": "1m", "minute": "1m",
    "h": "1h", "hour": "1h",
    "d": "1d", "day": "1d",
}  # fmt: skip
_UNITS: Final = {1_000_000: "s", 60_000_000: "min", 3_600_000_000: "h", 86_400_000_000: "day"}


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Limit:
    """At most `max` claims in any window of `per_us` microseconds.

    Written `Limit("10/min")`, `Limit("50/s")`, `Limit("1000/h")`, `Limit("10000/day")`,
    `Limit("100/30s")`, or `Limit(max=10, per="1m")`. With `cost="tokens"` it counts what claims
    cost in that unit, not the claims. `str()` returns the canonical form.
    """

    max: int
    """Claims, or their cost, allowed in one window: 1 to 1,000,000,000."""

    per_us: int
    """Length of the window in microseconds: at least a millisecond."""

    cost: str | None
    """The unit that `max` counts; None counts claims."""

    @overload
    def __init__(self, rate: str, *, cost: str | None = None) -> None: ...
    @overload
    def __init__(self, *, max: int, per: Duration, cost: str | None = None) -> None: ...
    def __init__(
        self,
        rate: Any = None,
        *,
        max: Any = None,  # noqa: A002 - the field's own name
        per: Any = None,
        cost: Any = None,
    ) -> None:
        if rate is not None:
            if max is not None or per is not None:
                raise ConfigError(
                    f"limit must be a string, or max and per, got {shown(rate)} and one of them",
                    field="limit",
                    value=rate,
                )
            max, per = _read(rate)  # noqa: A001 - as above
        object.__setattr__(self, "max", check_whole("limit max", max, least=1, most=_MOST))
        object.__setattr__(self, "per_us", to_us("limit per", per, least_us=_SHORTEST_US))
        object.__setattr__(self, "cost", None if cost is None else check_unit(cost))

    @property
    def rate(self) -> str:
        """The limit as a string, without the unit of cost."""
        window = _UNITS.get(self.per_us) or describe(self.per_us).replace(" ", "")
        return f"{self.max}/{window}"

    def __str__(self) -> str:
        return self.rate if self.cost is None else f"{self.rate} of {self.cost}"

    def __repr__(self) -> str:
        unit = "" if self.cost is None else f", cost={self.cost!r}"
        return f"Limit({self.rate!r}{unit})"


def check_unit(value: Any) -> str:
    """Return `value` if it is a valid unit of cost; units are part of keys and specs."""
    if isinstance(value, str) and _UNIT.fullmatch(value):
        return value
    raise ConfigError(
        f"cost must be a unit's name: 1 to 32 of a-z, 0-9 and '_', starting with a letter, "
        f"got {shown(value)}",
        field="cost",
        value=value,
    )


def check_stack(given: Any, *, what: str = "limits") -> tuple[Limit, ...]:
    """The limits, shortest window first; refused if one of them can never be reached.

    Limits are compared in pairs: one that only several others together make useless passes.
    """
    if not (isinstance(given, list | tuple) and all(isinstance(one, Limit) for one in given)):
        raise ConfigError(
            f"{what} must be a list of limits such as [Limit('10/min')], got {shown(given)}",
            field=what,
            value=given,
        )
    stack = tuple(sorted(given, key=_window))
    for shorter, longer in combinations(stack, 2):
        is_same = shorter.cost == longer.cost
        reason = _contradiction(shorter, longer) if is_same else None
        if reason:
            raise ConfigError(
                f"{what} must not contradict each other, got {shorter} and {longer}: {reason}",
                field=what,
                value=stack,
            )
    return stack


def _window(limit: Limit) -> tuple[int, str]:
    return limit.per_us, limit.cost or ""


def _contradiction(shorter: Limit, longer: Limit) -> str | None:
    if shorter.per_us == longer.per_us:
        return "both have the same window"
    if shorter.max >= longer.max:
        return f"{shorter} can never be reached"
    windows = -(-longer.per_us // shorter.per_us)
    if shorter.max * windows <= longer.max:
        return f"{longer} can never be reached"
    return None


def _read(rate: Any) -> tuple[int, str]:
    found = _RATE.fullmatch(rate) if isinstance(rate, str) else None
    if found is None or not (found[2] in _WINDOWS or found[2][0].isdigit()):
        raise ConfigError(
            f"limit must be a count per window such as '10/min', '50/s' or '100/30s', "
            f"got {shown(rate)}; windows: {', '.join(_UNITS.values())}, or a duration",
            field="limit",
            value=rate,
        )
    count, window = found.groups()
    return int(count), _WINDOWS.get(window, window)
