"""One replay of a window: how long its jobs would have waited, and how busy the slots were."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from faena.limits import Limit
from faena.telemetry.advice import simulation
from faena.telemetry.advice.simulation import Arrivals, Played, Report, Rules, Window
from faena.telemetry.statistics import Timing
from faena.values.view import View

_SLICES: Final = 48


class Replay(View, frozen=True, kw_only=True):
    """A window that was played once."""

    slots: int
    limits: tuple[str, ...]
    wait_p50_s: float
    wait_p95_s: float
    wait_p99_s: float
    wait_mean_s: float
    utilization: float
    """The part of slots that was in use, until the last job had ended."""
    ended_late_s: float
    """How long after the end of the window its last job ended."""
    wait_p95_course: tuple[float, ...]
    """In seconds: the p95 of waits of what came in each 48th of the window."""
    tenants: dict[str, float]
    """With weights: the p95 of waits of these tenants, and of all others as ''."""


class WhatIf(View, frozen=True, kw_only=True):
    """The same arrivals twice: as things are, and as they would be."""

    queue: str
    since: int
    until: int
    jobs: int
    """Attempts that were replayed."""
    exact: int
    """Those whose instant is known exactly; the others were spread within their minutes."""
    objective_s: float
    measured: Timing
    """Waits as workers measured them in the window: how near the replay comes."""
    before: Replay | None
    """None if nothing came, or no attempt has ended yet."""
    after: Replay | None
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """How the queue is now."""

    objective_s: float
    slots: int
    has_workers: bool = True
    limits: Sequence[Limit]
    tenant_limits: Sequence[Limit] = ()
    tenant_most: int | None = None
    weights: Mapping[str, float]
    by_time: bool = False


def replay(
    arrivals: Arrivals, how: Present, named: Collection[str], window_s: float, report: Report
) -> Replay:
    """Play the arrivals of a window once; waits of the `named` tenants are told apart."""
    numbers = {name: number for number, name in enumerate(arrivals.tenants)}
    rules = Rules(
        slots=how.slots,
        limits=_windows(how.limits),
        tenant_limits=_windows(how.tenant_limits),
        tenant_most=how.tenant_most,
        weights={numbers[name]: one for name, one in how.weights.items() if name in numbers},
        by_time=how.by_time,
    )
    played = simulation.play(arrivals, rules, report)
    waits, span_s = sorted(played.waits_s), max(window_s, played.ended)
    return Replay(
        slots=how.slots,
        limits=tuple(map(str, how.limits)),
        wait_p50_s=_quantile(waits, 0.5),
        wait_p95_s=_quantile(waits, 0.95),
        wait_p99_s=_quantile(waits, 0.99),
        wait_mean_s=sum(waits) / len(waits),
        utilization=played.busy_s / (how.slots * span_s),
        ended_late_s=max(0.0, played.ended - window_s),
        wait_p95_course=_slices(arrivals, played, window_s),
        tenants=_by_tenant(arrivals, played, named),
    )


def _quantile(ordered: Sequence[float], part: float) -> float:
    return ordered[round(part * (len(ordered) - 1))] if ordered else 0.0


def _slices(arrivals: Arrivals, played: Played, window_s: float) -> tuple[float, ...]:
    waits: list[list[float]] = [[] for _ in range(_SLICES)]
    for at, wait in zip(arrivals.at, played.waits_s, strict=True):
        waits[min(_SLICES - 1, int(at / window_s * _SLICES))].append(wait)
    return tuple(_quantile(sorted(one), 0.95) for one in waits)


def _by_tenant(arrivals: Arrivals, played: Played, named: Collection[str]) -> dict[str, float]:
    waits: dict[str, list[float]] = {}
    for number, wait in zip(arrivals.tenant, played.waits_s, strict=False) if named else ():
        name = arrivals.tenants[number]
        waits.setdefault(name if name in named else "", []).append(wait)
    return {name: _quantile(sorted(waits[name]), 0.95) for name in sorted(waits)}


def _windows(limits: Sequence[Limit]) -> tuple[Window, ...]:
    return tuple(Window(one.max, one.per_us / 1e6) for one in limits if one.cost is None)
