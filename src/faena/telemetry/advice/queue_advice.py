"""What a queue needs, as values: how much comes, how long it takes, how many slots are right."""

from __future__ import annotations

from typing import Literal

from faena.telemetry.histogram import Histogram
from faena.telemetry.statistics import Timing
from faena.values.view import View

Status = Literal["healthy", "warning", "critical"]


class TaskAdvice(View, frozen=True, kw_only=True):
    """One task of a queue; its attempts share the queue's slots with those of other tasks."""

    also = ("wait", "run")
    apart = ("waits", "runs")

    task: str
    count: int
    """Attempts that began in the window."""
    waits: Histogram
    runs: Histogram
    is_enough: bool
    """Whether at least a hundred attempts began; with fewer, nothing is recommended."""
    arrival_rate: float | None
    """λ: attempts that became ready, per second."""
    service_s: float | None
    """1/μ: how long an attempt takes, on average."""
    utilization: float | None
    """The part of all the queue's slots that this task needs."""
    recommended_slots: int | None
    """Slots for this task alone, of which 70 % would be in use."""

    @property
    def wait(self) -> Timing:
        """How long jobs were ready before they were claimed."""
        return Timing.of(self.waits)

    @property
    def run(self) -> Timing:
        """How long attempts took."""
        return Timing.of(self.runs)


class QueueAdvice(View, frozen=True, kw_only=True):
    """One queue over a window. Slots are those of all its workers together."""

    also = ("wait", "run")
    apart = ("waits", "runs")

    queue: str
    since: int
    """The window, in the server's microseconds."""
    until: int
    status: Status
    """`critical` if more than 90 % of slots are in use, `warning` if more than 70 %, or if 5 % of
    jobs waited longer than the objective."""
    words: tuple[str, ...]
    """The advice in sentences."""
    count: int
    """Attempts that began in the window."""
    waits: Histogram
    runs: Histogram
    is_enough: bool
    """Whether at least a hundred attempts began; with fewer, nothing is recommended."""
    slots: int
    """Jobs that can run at a time now: in all workers, within `max_running` and an order of the
    whole queue. Without workers, those that one process would have."""
    has_workers: bool
    arrival_rate: float | None
    """λ: attempts that became ready, per second."""
    service_s: float | None
    """1/μ: how long an attempt takes, on average."""
    variability: float | None
    """(1 + cv²) / 2 of run times, by which waits are longer than with exponential ones."""
    utilization: float | None
    """λ / (slots x μ): above 1, what waits grows."""
    recommended_slots: int | None
    """Slots of which 70 % would be in use: λ / (0.7 x μ), rounded up."""
    objective_s: float
    """How long a job should wait at most: the queue's `objective`."""
    predicted_wait_s: float | None
    """The wait that 5 % of jobs exceed with the present slots, by Erlang C; None if these cannot
    keep up, or nothing is known."""
    objective_slots: int | None
    """The fewest slots with which at most 5 % of jobs wait longer than the objective."""
    peak_rate: float | None
    """Arrivals per second in the busiest minute, or in windows above two hours the busiest hour."""
    peak_slots: int | None
    """What would be recommended if it were always like that."""
    limit_rate: float | None
    """Attempts per second that the queue's limits let begin at most; None without limits."""
    tasks: tuple[TaskAdvice, ...]

    @property
    def wait(self) -> Timing:
        """How long jobs were ready before they were claimed."""
        return Timing.of(self.waits)

    @property
    def run(self) -> Timing:
        """How long attempts took."""
        return Timing.of(self.runs)
