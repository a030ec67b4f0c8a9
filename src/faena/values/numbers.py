"""Numbers given by the program, checked against their bounds.

A `bool` is refused although it is an `int` in Python: `concurrency=True` is a mistake.
"""

from __future__ import annotations

import math
from typing import Any, Final

from faena.errors import ConfigError, shown

_MOST_DIGITS: Final = 18


def check_whole(what: str, value: Any, *, least: int, most: int) -> int:
    """Return `value` if it is an int from `least` to `most`, both included."""
    if isinstance(value, int) and not isinstance(value, bool):
        number = int.__int__(value)  # a plain int, also of an enum or another subclass
        if least <= number <= most:
            return number
    raise ConfigError(
        f"{what} must be a whole number from {least} to {most}, got {shown(value)}",
        field=what,
        value=value,
    )


def read_whole(text: str) -> int | str:
    """Reads a string of digits; returns any other string unchanged, for the caller to refuse.

    So is a string with more digits than any bound has: Python refuses to parse the longest ones.
    """
    is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return int(text) if is_number else text


def keep_whole(options: object, name: str, *, least: int, most: int, what: str = "") -> None:
    """Check a field of frozen options during construction, and store it as a plain int."""
    value = check_whole(what or name, getattr(options, name), least=least, most=most)
    object.__setattr__(options, name, value)


def check_real(what: str, value: Any, *, least: float, most: float) -> float:
    """Return `value` as a float if it is a finite number from `least` to `most`."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and least <= value <= most and math.isfinite(value):
        return float(value)
    raise ConfigError(
        f"{what} must be a number from {least:g} to {most:g}, got {shown(value)}",
        field=what,
        value=value,
    )
