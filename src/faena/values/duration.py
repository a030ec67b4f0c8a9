"""Lengths of time, as people write them and as the engine counts them.

At the API a duration is a `timedelta` or a string such as "90s", "5m", "24h", "7d", "200ms" or
"1h30m": whole numbers with units, largest unit first, each unit once. Bare numbers are refused,
because 30 could mean seconds or milliseconds. Internally, a duration is a whole number of
microseconds: comparing and adding is exact, and ten years still fit into a double.
"""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Any, Final, TypeAlias

from faena.errors import ConfigError, shown

Duration: TypeAlias = timedelta | str

LONGEST_US: Final = 3650 * 86_400_000_000

_UNITS: Final = (
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
)
_TEXT: Final = re.compile(
    "".join(f"(?:([0-9]{{1,18}}){unit}(?: (?=[0-9]))?)?" for unit, _ in _UNITS)
)
_VALID: Final = "a timedelta, or a string such as '90s', '5m' or '1h30m'"


def to_us(
    what: str, value: Any, *, least_us: int = 0, most_us: int = LONGEST_US, other: str = ""
) -> int:
    """Microseconds of `value` between two bounds, at most ten years.

    Errors name `what`, and `other`, which says what else the caller accepts.
    """
    us = _parse(what, value, other)
    if least_us <= us <= most_us:
        return us
    bounds = f"from {describe(least_us)} to {describe(most_us)}"
    raise ConfigError(
        f"{what} must be a duration {bounds}, got {shown(value)}", field=what, value=value
    )


def to_ms(what: str, value: Any) -> int:
    """Milliseconds, rounded up so that a short duration does not become zero."""
    return -(-to_us(what, value) // 1_000)


def to_s(what: str, value: Any) -> float:
    """Seconds, for the timeouts of the standard library."""
    return to_us(what, value) / 1_000_000


def describe(us: int) -> str:
    """The shortest exact string, largest unit first: "1h 30m". `to_us` reads it."""
    parts: list[str] = []
    rest = abs(us)
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    sign = "-" if us < 0 else ""
    return sign + " ".join(parts) if parts else "0s"


def _parse(what: str, value: Any, other: str) -> int:
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    found = _TEXT.fullmatch(value) if isinstance(value, str) and value else None
    if found is None:
        raise ConfigError(
            f"{what} must be {_VALID}{other}, got {shown(value)}{_hint(value)}",
            field=what,
            value=value,
        )
    return sum(
        int(digits) * size
        for digits, (_, size) in zip(found.groups(default="0"), _UNITS, strict=True)
    )


def _hint(value: Any) -> str:
    """How to write a bare number, if it was meant as seconds."""
    is_plain = type(value) in {int, float}
    if not is_plain or not 0 < value <= LONGEST_US / 1e6:
        return ""
    text = f"{value}s" if isinstance(value, int) else describe(math.ceil(value * 1e6))
    return f"; for seconds, write {text!r}"
