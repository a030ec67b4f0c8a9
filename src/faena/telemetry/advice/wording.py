"""Advice in sentences, and numbers as people read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from faena.telemetry.advice.queue_advice import QueueAdvice
from faena.telemetry.snapshot import QueueSnapshot

_PEAK: Final = 1.5
"""A busiest step is told from this multiple of the mean on."""
_UNEVEN: Final = 1.5
"""A variability from which run times are said to differ much: the longest ones decide."""


def duration(seconds: float | None) -> str:
    """A duration with two or three digits: 340 ms, 1.25 s, 3.4 min."""
    if seconds is None:
        return "-"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        if seconds >= size * 0.9995:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1000:.3g} ms" if seconds > 0 else "0 s"


def rate(per_second: float | None) -> str:
    """Jobs for each second, minute or hour, so that it is a number above one."""
    if per_second is None:
        return "-"
    for size, unit in ((1, "s"), (60, "min")):
        if per_second * size >= 1:
            return f"{per_second * size:.3g}/{unit}"
    return f"{per_second * 3600:.3g}/h"


def counted_slots(number: int) -> str:
    """1 slot, 2 slots."""
    return f"{number} slot" if number == 1 else f"{number:,} slots"


def sentences(advice: QueueAdvice, seen: QueueSnapshot, concurrency: int) -> Iterator[str]:
    """What was found and what to do about it, the most important first."""
    if seen.holds:
        reasons = ", ".join(hold.reason for hold in seen.holds)
        yield f"the queue is held ({reasons}): its jobs wait for that, not for slots"
    if not advice.has_workers:
        yield (
            f"no worker serves the queue now: what follows is for one process with "
            f"{counted_slots(advice.slots)}"
        )
    if advice.arrival_rate is None or advice.service_s is None or advice.utilization is None:
        yield "no attempt has ended in the window: there is nothing to advise from"
        return
    yield (
        f"{rate(advice.arrival_rate)} come and take {duration(advice.service_s)} each: "
        f"{advice.arrival_rate * advice.service_s:.3g} of {counted_slots(advice.slots)} are in use "
        f"on average, {advice.utilization:.0%}"
    )
    if not advice.is_enough:
        began = "1 attempt" if advice.count == 1 else f"{advice.count} attempts"
        yield f"only {began} began, too few to recommend anything: take a longer window"
        return
    yield from _recommended(advice, concurrency)
    yield from _objective(advice)
    yield from _beside(advice)


def _recommended(advice: QueueAdvice, concurrency: int) -> Iterator[str]:
    wanted, slots = advice.recommended_slots or 1, advice.slots
    processes = -(-wanted // concurrency)
    room = f"{processes} process{'es' if processes > 1 else ''} with concurrency={concurrency}"
    if (advice.utilization or 0) >= 1:
        yield f"{counted_slots(slots)} cannot keep up: what waits grows"
    if wanted > slots:
        yield f"{counted_slots(wanted)} would be in use for 70 %, such as {room}"
    elif wanted < slots:
        yield f"{counted_slots(wanted)} would be enough for 70 % in use: {slots - wanted} to spare"
    else:
        yield f"{counted_slots(slots)} are right for 70 % in use"


def _objective(advice: QueueAdvice) -> Iterator[str]:
    goal = duration(advice.objective_s)
    if advice.objective_slots is None:
        yield f"no number of slots up to a million keeps waits below {goal}"
        return
    waited = advice.predicted_wait_s
    said = "without end" if waited is None else duration(waited)
    yield (
        f"with {counted_slots(advice.slots)}, 5 % of jobs wait longer than {said}; the objective "
        f"of {goal} needs at least {counted_slots(advice.objective_slots)}"
    )


def _beside(advice: QueueAdvice) -> Iterator[str]:
    arrivals, peak = advice.arrival_rate or 0.0, advice.peak_rate
    if advice.limit_rate is not None and arrivals > advice.limit_rate:
        yield (
            f"limits let {rate(advice.limit_rate)} begin, and {rate(arrivals)} come: more slots "
            f"do not help"
        )
    if peak is not None and arrivals and peak >= _PEAK * arrivals:
        right = counted_slots(advice.peak_slots or 1)
        yield f"at the busiest {rate(peak)} came, for which {right} would be right"
    if (advice.variability or 1.0) >= _UNEVEN:
        longest = duration((advice.run.p99_us or 0) / 1e6)
        yield (
            f"run times differ much (p99 {longest}), which makes waits {advice.variability:.3g} "
            f"times as long: long jobs are better in a queue of their own"
        )
