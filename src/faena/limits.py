"""Rates that a queue or a tenant must not exceed.

A limit says that no window of length `per`, wherever it starts, holds more than `max` claims. Here
a limit is only read, checked and written; the engine's scripts enforce it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, overload

from faena.duration import Duration, describe, to_us
from faena.errors import ConfigError
from faena.number import check_whole

_MOST: Final = 1_000_000_000
_SHORTEST_US: Final = 1_000
_RATE: Final = re.compile(r"([0-9]{1,12}) ?/ ?([0-9a-z]+)")
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
    `Limit("100/30s")`, or `Limit(max=10, per="1m")`. `str()` gives the one canonical text.
    """

    max: int
    """Claims allowed in one window: 1 to 1,000,000,000."""

    per_us: int
    """Length of the window in microseconds: at least a millisecond."""

    @overload
    def __init__(self, rate: str) -> None: ...
    @overload
    def __init__(self, *, max: int, per: Duration) -> None: ...
    def __init__(self, rate: Any = None, *, max: Any = None, per: Any = None) -> None:  # noqa: A002 - the field's own name
        if rate is not None:
            if max is not None or per is not None:
                raise ConfigError(
                    f"limit must be a text or max and per, got {rate!r} beside them",
                    field="limit",
                    value=rate,
                )
            max, per = _read(rate)  # noqa: A001 - as above
        object.__setattr__(self, "max", check_whole("limit max", max, least=1, most=_MOST))
        object.__setattr__(self, "per_us", to_us("limit per", per, least_us=_SHORTEST_US))

    def __str__(self) -> str:
        window = _UNITS.get(self.per_us) or describe(self.per_us).replace(" ", "")
        return f"{self.max}/{window}"

    def __repr__(self) -> str:
        return f"Limit({str(self)!r})"


def check_stack(limits: Iterable[Limit], *, what: str = "limits") -> tuple[Limit, ...]:
    """The limits, shortest window first, when each of them can be the one that binds.

    Two limits are compared at a time; a limit made idle only by several others together passes.
    """
    stack = tuple(sorted(limits, key=lambda limit: limit.per_us))
    for shorter, longer in combinations(stack, 2):
        reason = _contradiction(shorter, longer)
        if reason:
            raise ConfigError(
                f"{what} must not contradict each other, got {shorter} and {longer}: {reason}",
                field=what,
                value=stack,
            )
    return stack


def _contradiction(shorter: Limit, longer: Limit) -> str | None:
    if shorter.per_us == longer.per_us:
        return "both have the same window"
    if shorter.max >= longer.max:
        return f"{shorter} can never bind"
    windows = -(-longer.per_us // shorter.per_us)
    if shorter.max * windows <= longer.max:
        return f"{longer} can never bind"
    return None


def _read(rate: Any) -> tuple[int, str]:
    found = _RATE.fullmatch(rate) if isinstance(rate, str) else None
    if found is None:
        raise ConfigError(
            f"limit must be a count per window such as '10/min', '50/s' or '100/30s', got {rate!r}",
            field="limit",
            value=rate,
        )
    count, window = found.groups()
    return int(count), _WINDOWS.get(window, window)
