"""What two replays say, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from faena.telemetry.advice import wording
from faena.telemetry.advice.replay import Replay, WhatIf

_NEAR: Final = 0.05
"""Waits that differ by less are called the same."""


def sentences(found: WhatIf, waiting: int, *, has_workers: bool) -> Iterator[str]:
    """What the two replays say, the most important first."""
    before, after = found.before, found.after
    if before is None or after is None:
        is_empty = not (found.measured.count or waiting)
        unknown = "no attempt has ended in the window: how long jobs take is unknown"
        yield "nothing came in the window" if is_empty else unknown
        return
    if not has_workers:
        room = wording.counted_slots(before.slots)
        yield f"no worker serves the queue now: as it is means one process with {room}"
    was, would = wording.duration(before.wait_p95_s), wording.duration(after.wait_p95_s)
    verdict = _verdict(before.wait_p95_s, after.wait_p95_s, found.objective_s)
    yield f"p95 of waits: {was} as it is, {would} then: {verdict}"
    yield (
        f"slots in use: {before.utilization:.0%} of {before.slots:,} as it is, "
        f"{after.utilization:.0%} of {after.slots:,} then"
    )
    yield _objective(found.objective_s, before, after)
    if after.ended_late_s > found.objective_s:
        late = wording.duration(after.ended_late_s)
        yield f"the last job would have ended {late} after the end of the window"
    yield _source(found)


def _objective(objective_s: float, before: Replay, after: Replay) -> str:
    is_met, would_be = (one.wait_p95_s <= objective_s for one in (before, after))
    said = "is met" if would_be else "is not met"
    both = f"{said} in both" if is_met == would_be else f"{said} then, unlike now"
    return f"the objective of {wording.duration(objective_s)} {both}"


def _verdict(was: float, would: float, objective_s: float) -> str:
    if abs(was - would) <= _NEAR * max(was, would, objective_s / 100):
        return "no difference that matters"
    if would < was:
        return f"{was / would:.3g} times shorter" if would > 0 else "gone"
    return f"{would / was:.3g} times longer" if was > 0 else "new"


def _source(found: WhatIf) -> str:
    spread = found.jobs - found.exact
    where = f"{found.exact:,} at their exact instants" if found.exact else ""
    if spread:
        rest = f"{spread:,} spread at random within their minutes"
        where = f"{where}, {rest}" if where else rest
    p95_us = found.measured.p95_us
    measured = wording.duration(None if p95_us is None else p95_us / 1e6)
    return f"{found.jobs:,} jobs replayed: {where}; the p95 that workers measured is {measured}"
