"""What a worker process has measured of the jobs it ran, by queue and task, since it began.

A fetcher sends it to the broker about once a second; `/metrics` shows what the whole process has
measured.
"""

from __future__ import annotations

from typing import NamedTuple

from faena.telemetry.histogram import Histogram


class Exemplar(NamedTuple):
    """One attempt that is an example of the others: where its trace is found."""

    trace_id: str
    """32 hexadecimal digits."""
    run_us: int
    at: float
    """Seconds since 1970, by this process's clock."""


class Measured:
    """The attempts of one task."""

    __slots__ = ("completed", "dead", "exemplar", "retried", "runs", "started", "totals", "waits")

    def __init__(self) -> None:
        self.started = 0
        self.completed = 0
        self.retried = 0
        """Attempts that failed, with another one to come."""
        self.dead = 0
        self.waits = Histogram()
        """From the instant a job was ready to its claim."""
        self.runs = Histogram()
        """Of each attempt."""
        self.totals = Histogram()
        """From enqueue, or from when it was due, to the completion of the job."""
        self.exemplar: Exemplar | None = None
        """The last attempt that belongs to a trace."""

    def packed(self) -> list[int | list[int]]:
        """To be sent, as minutes.lua reads it."""
        numbers = [self.started, self.completed, self.retried, self.dead]
        return [*numbers, self.waits.packed(), self.runs.packed(), self.totals.packed()]

    def add(self, other: Measured) -> None:
        """Count what another one has measured since."""
        self.started += other.started
        self.completed += other.completed
        self.retried += other.retried
        self.dead += other.dead
        self.waits.absorb(other.waits)
        self.runs.absorb(other.runs)
        self.totals.absorb(other.totals)
        self.exemplar = other.exemplar or self.exemplar


Measurements = dict[tuple[str, str], Measured]
"""(queue, task) → what was measured of it."""
