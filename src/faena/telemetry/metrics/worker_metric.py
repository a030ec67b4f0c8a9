"""What a worker process has measured of the jobs it ran: each process tells only its own part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from faena.telemetry.histogram import Histogram
from faena.telemetry.measured import Measured
from faena.telemetry.metrics import seed
from faena.telemetry.metrics.metric import Facts, Metric, Observed, Sample

_TASK: Final = ("queue", "task")


def _each(
    number: Callable[[Measured], float | Observed],
) -> Callable[[Facts], Iterator[Sample]]:
    return lambda facts: (
        Sample(names, number(measured))
        for names, measured in sorted((facts.measured or {}).items())
    )


def _outcomes(facts: Facts) -> Iterator[Sample]:
    for names, one in sorted((facts.measured or {}).items()):
        for outcome in ("completed", "retried", "dead"):
            yield Sample((*names, outcome), getattr(one, outcome))


def _durations(
    name: str, text: str, of: Callable[[Measured], Histogram], *, has_exemplar: bool = False
) -> Metric:
    return Metric(
        f"faena_job_{name}_seconds",
        "histogram",
        _TASK,
        text,
        "worker",
        _each(lambda one: Observed(of(one), one.exemplar if has_exemplar else None)),
        unit="seconds",
        aliases=seed.DURATIONS[name],
    )


WORKERS: Final = (
    Metric(
        "faena_attempts_started_total",
        "counter",
        _TASK,
        "Attempts that this process began.",
        "worker",
        _each(lambda one: one.started),
    ),
    Metric(
        "faena_attempts_ended_total",
        "counter",
        (*_TASK, "outcome"),
        "Attempts of this process that completed, will be retried, or were the last ones of jobs "
        "that are dead.",
        "worker",
        _outcomes,
    ),
    _durations(
        "wait",
        "From the instant a job was ready to its claim by this process.",
        lambda one: one.waits,
    ),
    _durations(
        "run",
        "How long each attempt took in this process.",
        lambda one: one.runs,
        has_exemplar=True,
    ),
    _durations(
        "total",
        "From enqueue, or from when it was due, to the completion of a job by this process.",
        lambda one: one.totals,
    ),
)
