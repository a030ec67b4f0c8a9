"""Numbers given by the program, checked against their bounds.

A `bool` is refused although Python counts it as an `int`: `concurrency=True` is a slip, not a one.
"""

from __future__ import annotations

import math
from typing import Any

from faena.errors import ConfigError


def check_whole(what: str, value: Any, *, least: int, most: int) -> int:
    """Return `value` when it is an int from `least` to `most`, both included."""
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return int(value)
    raise ConfigError(
        f"{what} must be a whole number from {least} to {most}, got {value!r}",
        field=what,
        value=value,
    )


def check_real(what: str, value: Any, *, least: float, most: float) -> float:
    """Return `value` as a float when it is a finite number from `least` to `most`."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and math.isfinite(value) and least <= value <= most:
        return float(value)
    raise ConfigError(
        f"{what} must be a number from {least:g} to {most:g}, got {value!r}",
        field=what,
        value=value,
    )
