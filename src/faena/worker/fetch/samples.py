"""What the jobs of a shard have taken, by task: measured here, counted by the server.

An exchange brings it along about once a second, and the last one of a worker that stops. A worker
that is killed loses what it has measured since.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from faena.engine.envelope import facts_in, is_chained
from faena.engine.scripts import Claim
from faena.job import Job
from faena.options import QueueOptions
from faena.outcomes import Buried, Completed, Outcome, Retried, Snoozed
from faena.telemetry.measured import Exemplar, Measured, Measurements
from faena.telemetry.tracing.trace_header import origin_of
from faena.worker.execute.attempt_state import Attempt

_EVERY_S = 1.0
_NO_SPEC = b"000\n"


class Samples:
    """Measures the attempts of one shard."""

    def __init__(self, queue: str, options: QueueOptions, measured: Measurements) -> None:
        """`measured` is of the whole process, and grows with each exchange."""
        self._queue = queue
        self._boost_us = options.retry_boost * options.age_step_us
        self._step_us = options.age_step_us
        self._measured = measured
        self._tasks: dict[str, Measured] = {}
        self._taken_at = 0.0

    @property
    def is_empty(self) -> bool:
        """Whether the server knows everything."""
        return not self._tasks

    def begun(self, attempts: Sequence[Attempt]) -> None:
        """Count attempts that a claim has brought, and how long their jobs were ready before."""
        tasks = self._tasks
        for attempt in attempts:
            name = attempt.handler.name
            measured = tasks.get(name)
            if measured is None:
                measured = tasks[name] = Measured()
            measured.started += 1
            claim, job = attempt.claim, attempt.job
            ready_us = job.enqueued_us
            if claim.attempts or claim.enqueued_at:
                ready_us = self._ready_us(claim)
            measured.waits.add(job.started_us - ready_us)

    def _ready_us(self, claim: Claim) -> int:
        """When a job that has run or was postponed became ready: what its score would be without
        its priority and its attempts."""
        spec = claim.spec or _NO_SPEC
        if is_chained(spec):
            return int(claim.score)
        worth = (claim.priority or int(spec[:3])) * self._step_us - claim.attempts * self._boost_us
        return int(claim.score) - worth

    def ended(self, attempt: Attempt, outcome: Outcome | None) -> None:
        """Count how an attempt has ended, and how long it and, if it is completed, its job took."""
        name = attempt.handler.name
        measured = self._tasks.get(name)
        if measured is None:
            measured = self._tasks[name] = Measured()
        run_us = int((time.monotonic() - attempt.started) * 1e6)
        kind = type(outcome)
        if kind is Completed:
            measured.completed += 1
            job = attempt.job
            since_us = job.enqueued_us
            if attempt.claim.enqueued_at:
                since_us = _since_us(attempt.claim, job)
            measured.totals.add(job.started_us - since_us + run_us)
        elif kind is Retried:
            measured.retried += 1
        elif kind is Buried:
            measured.dead += 1
        elif isinstance(outcome, Snoozed) and outcome.is_parked:
            return  # its handler has not begun
        measured.runs.add(run_us)
        if attempt.job.headers:
            _note_trace(measured, attempt.job.headers, run_us)

    def take(
        self, now: float, *, is_last: bool = False, is_ahead: bool = False
    ) -> dict[str, list[Any]] | None:
        """What is new, by the names of the server's fields; at most once a second but the last.

        A call that is sent ahead may wait on the server for long, and takes nothing along.
        """
        is_early = is_ahead or now - self._taken_at < _EVERY_S
        if not self._tasks or (is_early and not is_last):
            return None
        self._taken_at = now
        taken, self._tasks = self._tasks, {}
        for task, measured in taken.items():
            known = self._measured.get((self._queue, task))
            if known is None:
                known = self._measured[self._queue, task] = Measured()
            known.add(measured)
        return {f"task:{task}": measured.packed() for task, measured in taken.items()}


def _since_us(claim: Claim, job: Job) -> int:
    """When a job that was postponed was enqueued, or due if its producer delayed it."""
    facts = facts_in(claim.spec or _NO_SPEC)
    return max(job.enqueued_us + int(facts.get("delay", 0)), int(facts.get("at", 0)))


def _note_trace(measured: Measured, headers: Mapping[str, str], run_us: int) -> None:
    """Note an attempt that belongs to a trace, if that is recorded."""
    origin = origin_of(headers)
    if origin is not None and origin.is_sampled:
        measured.exemplar = Exemplar(origin.trace_id, run_us, time.time())
