"""What comes to a queue and how long it takes, out of its statistics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from faena.telemetry.advice.erlang import Load
from faena.telemetry.histogram import Histogram, bounds_of
from faena.telemetry.statistics import QueueStatistics, TaskStatistics

ENTERED: Final = (
    *("enqueued", "retried", "snoozed", "limited", "parked"),
    *("released", "rescued", "rerun"),
)
"""Events after which a job is ready, now or once its delay is over."""


def variability_of(runs: Histogram) -> float:
    """(1 + cv²) / 2 of run times: 1 for exponential ones, 0.5 for equal ones."""
    count, first, second = 0, 0.0, 0.0
    for bucket, number in runs.counts.items():
        low, high = bounds_of(bucket)
        middle = (low + high - 1) / 2
        count += number
        first += number * middle
        second += number * middle * middle
    if not first:
        return 1.0
    return max(0.5, second * count / (first * first) / 2)


def entered(counters: Mapping[str, int]) -> int:
    """Jobs that became ready, or will when their delay is over."""
    return sum(counters.get(name, 0) for name in ENTERED)


def arrived(found: QueueStatistics, ready: int) -> int:
    """Attempts that became ready in a window: those that began, and what still waits of the others.

    Jobs that were enqueued for later have not come yet; and what had been waiting before the window
    began is no arrival of it.
    """
    started = sum(task.started for task in found.tasks)
    return started + min(ready, max(0, entered(found.counters) - started))


def load_of(task: TaskStatistics, arrivals: float, window_s: float) -> Load | None:
    """The load of a task or queue; None if no attempt has ended."""
    mean_us = task.runs.mean_us
    if mean_us is None or window_s <= 0:
        return None
    return Load(arrivals / window_s, mean_us / 1e6, variability_of(task.runs))
