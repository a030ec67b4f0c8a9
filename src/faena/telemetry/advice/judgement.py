"""Judges a queue by what was counted in a window: Little's law, and Erlang C beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from faena.limits import Limit
from faena.telemetry.advice import erlang, wording
from faena.telemetry.advice.demand import arrived, load_of
from faena.telemetry.advice.erlang import Load
from faena.telemetry.advice.queue_advice import QueueAdvice, Status, TaskAdvice
from faena.telemetry.snapshot import QueueSnapshot
from faena.telemetry.statistics import QueueStatistics, Series, TaskStatistics

ENOUGH: Final = 100
"""Attempts below which nothing is recommended."""
_WARNING: Final = 0.7
_CRITICAL: Final = 0.9


class Capacity(NamedTuple):
    """What a queue may use, as its options and settings say."""

    concurrency: int
    """Slots of one worker process."""
    objective_us: int
    max_running: int | None = None
    """How many jobs may run at a time, 1 with an order of the whole queue."""
    limits: Sequence[Limit] = ()
    is_ordered: bool = False

    def waiting(self, counts: Mapping[str, int]) -> int:
        """Jobs that have come and wait: in an order, those behind others as well."""
        return counts["ready"] + (counts["blocked"] if self.is_ordered else 0)

    def slots(self, of_workers: int) -> int:
        """Jobs that can run at a time; without workers, in one process."""
        slots = of_workers or self.concurrency
        return slots if self.max_running is None else min(slots, self.max_running)

    @property
    def limit_rate(self) -> float | None:
        """Attempts per second that limits on claims let begin at most."""
        rates = [one.max / one.per_us * 1e6 for one in self.limits if one.cost is None]
        return min(rates, default=None)


def judge(
    found: QueueStatistics, series: Series | None, seen: QueueSnapshot, capacity: Capacity
) -> QueueAdvice:
    """The advice for a queue; `series` has the steps of the same window."""
    together, window_s = found.together(), (found.until - found.since) / 1e6
    arrivals = arrived(found, capacity.waiting(seen.counts))
    load = load_of(together, arrivals, window_s)
    slots, is_enough = capacity.slots(seen.slots), together.started >= ENOUGH
    objective_s = capacity.objective_us / 1e6
    peak = _peak(series, load)
    advice = QueueAdvice(
        queue=found.queue,
        since=found.since,
        until=found.until,
        status="healthy",
        words=(),
        count=together.started,
        waits=together.waits,
        runs=together.runs,
        is_enough=is_enough,
        slots=slots,
        has_workers=seen.slots > 0,
        arrival_rate=load and load.rate,
        service_s=load and load.service_s,
        variability=load and load.variability,
        utilization=load and load.erlangs / slots,
        recommended_slots=erlang.slots_for_target(load) if load and is_enough else None,
        objective_s=objective_s,
        predicted_wait_s=erlang.wait_s(slots, load) if load else None,
        objective_slots=erlang.slots_for_wait(objective_s, load) if load and is_enough else None,
        peak_rate=peak and peak.rate,
        peak_slots=erlang.slots_for_target(peak) if peak and is_enough else None,
        limit_rate=capacity.limit_rate,
        tasks=tuple(_tasks(found.tasks, arrivals, window_s, slots)),
    )
    status = _status(advice, seen)
    words = tuple(wording.sentences(advice, seen, capacity.concurrency))
    return replace(advice, status=status, words=words)


def _tasks(
    tasks: Sequence[TaskStatistics], arrivals: int, window_s: float, slots: int
) -> Iterable[TaskAdvice]:
    """What came is told by queue only: it is divided among tasks as their attempts began."""
    started = sum(task.started for task in tasks)
    for task in tasks:
        load = load_of(task, arrivals * task.started / started if started else 0, window_s)
        is_enough = task.started >= ENOUGH
        yield TaskAdvice(
            task=task.task,
            count=task.started,
            waits=task.waits,
            runs=task.runs,
            is_enough=is_enough,
            arrival_rate=load and load.rate,
            service_s=load and load.service_s,
            utilization=load and load.erlangs / slots,
            recommended_slots=erlang.slots_for_target(load) if load and is_enough else None,
        )


def _peak(series: Series | None, load: Load | None) -> Load | None:
    """The busiest whole step."""
    if series is None or load is None:
        return None
    rates = [
        sum(task.started for task in point.tasks) / series.step_us * 1e6
        for point in series.points
        if point.until - point.since == series.step_us
    ]
    return load._replace(rate=max(rates)) if rates and max(rates) > 0 else None


def _status(advice: QueueAdvice, seen: QueueSnapshot) -> Status:
    used = advice.utilization if advice.is_enough else None
    if used is not None and used > _CRITICAL:
        return "critical"
    oldest_s, late_us = (seen.oldest_us or 0) / 1e6, advice.wait.p95_us or 0.0
    if not seen.slots and oldest_s > advice.objective_s and not seen.holds:
        return "critical"  # jobs wait, and nobody is there for them
    is_late = max(late_us / 1e6, oldest_s) > advice.objective_s
    return "warning" if is_late or (used is not None and used > _WARNING) else "healthy"
