"""From which values on an alert of a queue is a warning, and from which it is critical."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from faena.errors import ConfigError, shown
from faena.options.fields import derive
from faena.values.duration import Duration, describe, to_us
from faena.values.keywords import known_fields

Bound: TypeAlias = "float | Duration | None"
Pair: TypeAlias = "tuple[Bound, Bound]"
"""The bound of a warning and the one of a critical alert; None: there is no such alert."""

_MOST: Final = 1_000_000_000_000


@known_fields("thresholds")
@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Bounds of one queue: (warning, critical). A value that reaches a bound is beyond it.

    What is left out is as in the rules of the app; `(None, None)` turns an alert off.
    """

    depth: Pair | None = None
    """Jobs that are ready or blocked; (100, 300) unless the app says otherwise."""

    backlog: Pair | None = None
    """Jobs that could start, are to start later, or run; (1000, None), for five minutes, unless the
    app says otherwise."""

    wait: Pair | None = None
    """How long the job that comes first has been ready; ("30s", "2m") unless the app says
    otherwise."""

    error_rate: Pair | None = None
    """Percent of attempts that failed in the last five minutes; (5, 15) unless the app says
    otherwise."""

    stalled: Pair | None = None
    """Jobs whose worker was lost in the last hour; (5, 20) unless the app says otherwise."""

    utilization: Pair | None = None
    """Percent of the slots of all workers that are in use; (95, None), for fifteen minutes, unless
    the app says otherwise."""

    silent: Pair | None = None
    """How long jobs have been ready while no worker claims any; ("2m", "5m") unless the app says
    otherwise."""

    given: dict[str, tuple[float | None, float | None]] = field(
        init=False, repr=False, compare=False
    )
    """Those that are not left out, in jobs, percent or microseconds."""

    def __post_init__(self) -> None:
        found = {name: getattr(self, name) for name in OF_QUEUES}
        pairs = {name: check_pair(name, one) for name, one in found.items() if one is not None}
        derive(self, "given", pairs)


OF_QUEUES: Final = (
    *("depth", "backlog", "wait", "error_rate", "stalled", "utilization", "silent"),
)
DURATIONS: Final = frozenset({"wait", "silent", "dead_old"})
PERCENTS: Final = frozenset({"error_rate", "utilization", "memory"})


def check_pair(name: str, pair: Any) -> tuple[float | None, float | None]:
    """Both bounds as numbers; refuses a warning that is not below what is critical."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:  # pyright: ignore[reportUnknownArgumentType]
        raise ConfigError(
            f"{name} must be a pair (warning, critical), got {shown(pair)}", field=name, value=pair
        )
    warning, critical = (_number(name, one) for one in pair)  # pyright: ignore[reportUnknownVariableType]
    if warning is not None and critical is not None and warning >= critical:
        raise ConfigError(
            f"{name} must have a warning below what is critical, got {shown(pair)}",
            field=name,
            value=pair,
        )
    return warning, critical


def _number(name: str, bound: Any) -> float | None:
    if bound is None:
        return None
    if name in DURATIONS:
        return to_us(name, bound, least_us=1)
    is_number = isinstance(bound, int | float) and not isinstance(bound, bool)
    most = 100 if name in PERCENTS else _MOST
    if not is_number or not math.isfinite(bound) or not 0 < bound <= most:
        raise ConfigError(
            f"{name} must be bounds above 0 and at most {most}, got {shown(bound)}",
            field=name,
            value=bound,
        )
    return bound


def value_text(rule: str, value: float) -> str:
    """A value or a bound of a rule, for people."""
    if rule in DURATIONS:
        return describe(round(value / 1e6) * 1_000_000 if value >= 1e6 else round(value))
    number = f"{value:.1f}".removesuffix(".0")
    return f"{number} %" if rule in PERCENTS else number
