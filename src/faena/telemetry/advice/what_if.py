"""What would have happened to the jobs of a window with other slots, limits or weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from msgspec.structs import replace as replaced

from faena.errors import ConfigError, nearest, shown
from faena.limits import Limit, check_stack
from faena.telemetry.advice.erlang import MOST_SLOTS
from faena.telemetry.advice.recorded import Recorded, replayable
from faena.telemetry.advice.replay import Present, WhatIf, replay
from faena.telemetry.advice.replay_wording import sentences
from faena.telemetry.advice.simulation import Arrivals, Report
from faena.values.names import check_label
from faena.values.numbers import check_real, check_whole

_LEAST_WEIGHT: Final = 0.01
_MOST_WEIGHT: Final = 1000.0
_MOST_NAMED: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is asked about; None: as it is."""

    slots: int | None = None
    limits: Sequence[Limit] | None = None
    weights: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if self.slots is None and self.limits is None and self.weights is None:
            raise ConfigError("what_if must be given slots, limits or weights, got none")
        if self.slots is not None:
            check_whole("slots", self.slots, least=1, most=MOST_SLOTS)
        if self.limits is not None:
            object.__setattr__(self, "limits", _claims_only(check_stack(self.limits)))
        if self.weights is not None:
            object.__setattr__(self, "weights", _checked(self.weights))


def what_if(recorded: Recorded, present: Present, change: Change, report: Report) -> WhatIf:
    """Replay a window twice; `report` gets how many of all jobs were played so far."""
    by_tenant = len({*recorded.mix, *(one.tenant for one in recorded.exact.arrivals)}) > 1
    runs = recorded.found.together().runs
    arrivals, exact = replayable(recorded, by_tenant=by_tenant) if runs.count else (_NONE, 0)
    _check_known(change.weights, arrivals.tenants)
    window_s = (recorded.found.until - recorded.found.since) / 1e6
    before = after = None
    if arrivals.at:
        changed = _changed(present, change)
        named = change.weights or {}
        before = replay(arrivals, present, named, window_s, report)
        after = replay(arrivals, changed, named, window_s, lambda n: report(len(arrivals.at) + n))
    found = WhatIf(
        queue=recorded.found.queue,
        since=recorded.found.since,
        until=recorded.found.until,
        jobs=len(arrivals.at),
        exact=exact,
        objective_s=present.objective_s,
        measured=recorded.found.together().wait,
        before=before,
        after=after,
        words=(),
    )
    return replaced(
        found, words=tuple(sentences(found, recorded.waiting, has_workers=present.has_workers))
    )


_NONE: Final = Arrivals((), (), ())


def _changed(present: Present, change: Change) -> Present:
    return replace(
        present,
        slots=present.slots if change.slots is None else change.slots,
        limits=present.limits if change.limits is None else change.limits,
        weights={**present.weights, **(change.weights or {})},
    )


def _claims_only(limits: tuple[Limit, ...]) -> tuple[Limit, ...]:
    for one in limits:
        if one.cost is not None:
            raise ConfigError(
                f"limits must count claims, got {one}: what jobs cost is not recorded",
                field="limits",
                value=limits,
            )
    return limits


def _checked(weights: Any) -> dict[str, float]:
    if not isinstance(weights, Mapping) or not weights:
        raise ConfigError(
            f"weights must be a mapping of tenants to weights, got {shown(weights)}",
            field="weights",
            value=weights,
        )
    return {
        check_label("tenant", name): check_real(
            "weight", one, least=_LEAST_WEIGHT, most=_MOST_WEIGHT
        )
        for name, one in weights.items()
    }


def _check_known(weights: Mapping[str, float] | None, tenants: Sequence[str]) -> None:
    for name in weights or ():
        if name not in tenants:
            known = [one for one in tenants if one]
            hint = nearest(name, known) if known else "no tenant is known of these jobs"
            hint = f"{len(known):,} others had" if len(known) > _MOST_NAMED else hint
            raise ConfigError(
                f"tenant {shown(name)} had no jobs in the window; {hint}", field="weights"
            )
