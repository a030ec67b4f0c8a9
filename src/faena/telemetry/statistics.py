"""What happened to the jobs of a queue in a window of time, by task: numbers and durations."""

from __future__ import annotations

from typing import Final, Self

from faena.telemetry.histogram import Histogram
from faena.values.view import View

NOT_EVENTS: Final = frozenset({"shares", "shares_squared", "throttled_us"})
"""What is counted of tenants' turns beside the events, for `queue.shares()`."""


class Timing(View, frozen=True, kw_only=True):
    """How long something took; None where nothing was counted."""

    count: int = 0
    mean_us: float | None = None
    p50_us: float | None = None
    p95_us: float | None = None
    p99_us: float | None = None
    longest_us: int | None = None

    @classmethod
    def of(cls, histogram: Histogram) -> Self:
        """The summary of a histogram."""
        return cls(
            count=histogram.count,
            mean_us=histogram.mean_us,
            p50_us=histogram.quantile_us(0.5),
            p95_us=histogram.quantile_us(0.95),
            p99_us=histogram.quantile_us(0.99),
            longest_us=histogram.longest_us,
        )


class TaskStatistics(View, frozen=True, kw_only=True):
    """The jobs of one task in a window."""

    also = ("wait", "run", "total", "error_rate")
    apart = ("waits", "runs", "totals")

    queue: str
    task: str
    started: int = 0
    """Attempts that began, first ones and retries."""
    completed: int = 0
    retried: int = 0
    """Attempts that failed, with another one to come."""
    dead: int = 0
    """Jobs that failed for good."""
    waits: Histogram
    """From the instant a job was ready to its claim."""
    runs: Histogram
    """Of each attempt."""
    totals: Histogram
    """From enqueue, or from when it was due, to the completion of the job."""

    @property
    def wait(self) -> Timing:
        """How long jobs were ready before they were claimed."""
        return Timing.of(self.waits)

    @property
    def run(self) -> Timing:
        """How long attempts took."""
        return Timing.of(self.runs)

    @property
    def total(self) -> Timing:
        """How long completed jobs took, from enqueue to completion."""
        return Timing.of(self.totals)

    @property
    def error_rate(self) -> float | None:
        """The part of ended attempts that failed; None if none has ended."""
        ended = self.completed + self.retried + self.dead
        return (self.retried + self.dead) / ended if ended else None


class QueueStatistics(View, frozen=True, kw_only=True):
    """The jobs of one queue in a window."""

    queue: str
    since: int
    """The first minute (or hour) of the window, in the server's microseconds."""
    until: int
    """Its end: now, unless an earlier one was asked for."""
    counters: dict[str, int]
    """How often each transition happened, by the name of its event; see docs/events.md."""
    tasks: tuple[TaskStatistics, ...]

    def task(self, name: str) -> TaskStatistics | None:
        """The statistics of one task; None if it had no jobs."""
        return next((one for one in self.tasks if one.task == name), None)

    def together(self) -> TaskStatistics:
        """All tasks of the queue added up; its task is empty."""
        none = Histogram()
        return TaskStatistics(
            queue=self.queue,
            task="",
            started=sum(one.started for one in self.tasks),
            completed=sum(one.completed for one in self.tasks),
            retried=sum(one.retried for one in self.tasks),
            dead=sum(one.dead for one in self.tasks),
            waits=none.merge(one.waits for one in self.tasks),
            runs=none.merge(one.runs for one in self.tasks),
            totals=none.merge(one.totals for one in self.tasks),
        )


class Series(View, frozen=True, kw_only=True):
    """Statistics of a queue step by step, the oldest first; steps without jobs are there too."""

    queue: str
    step_us: int
    points: tuple[QueueStatistics, ...]
