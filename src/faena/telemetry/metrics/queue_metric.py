"""The metrics of queues and tenants, which the broker knows for all processes alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from faena.states import State
from faena.telemetry.metrics import seed
from faena.telemetry.metrics.metric import Facts, Metric, Sample
from faena.telemetry.snapshot import QueueSnapshot, TenantSnapshot

OTHERS: Final = "(all others)"
"""The tenants that are not named. No tenant is called so, since names of tenants have no spaces."""


def _queues(facts: Facts) -> Iterable[QueueSnapshot]:
    return facts.snapshot.queues if facts.snapshot is not None else ()


def _each(number: Callable[[QueueSnapshot], float]) -> Callable[[Facts], Iterator[Sample]]:
    """One number for each queue."""
    return lambda facts: (Sample((one.queue,), number(one)) for one in _queues(facts))


def _by_state(facts: Facts) -> Iterator[Sample]:
    for one in _queues(facts):
        for state in State:
            yield Sample((one.queue, state.value), one.counts.get(state.value, 0))


def _by_tenant(
    number: Callable[[TenantSnapshot], float],
) -> Callable[[Facts], Iterator[Sample]]:
    def read(facts: Facts) -> Iterator[Sample]:
        for queue in _queues(facts):
            if queue.other_tenants is None:
                continue
            rest = number(queue.other_tenants)
            for at, one in enumerate(queue.tenants):
                if at < facts.tenants:
                    yield Sample((queue.queue, one.tenant), number(one))
                else:
                    rest += number(one)
            yield Sample((queue.queue, OTHERS), rest)

    return read


QUEUES: Final = (
    Metric(
        "faena_jobs",
        "gauge",
        ("queue", "state"),
        "Jobs by state. Of dead ones, those that nobody has dealt with.",
        "broker",
        _by_state,
        aliases=seed.JOBS,
    ),
    Metric(
        "faena_queue_depth",
        "gauge",
        ("queue",),
        "Jobs that are ready, delayed or running.",
        "broker",
        _each(lambda one: one.depth),
        aliases=seed.DEPTH,
    ),
    Metric(
        "faena_queue_oldest_ready_seconds",
        "gauge",
        ("queue",),
        "How long the job that comes first has been ready; 0 if none is.",
        "broker",
        _each(lambda one: (one.oldest_us or 0) / 1e6),
        unit="seconds",
    ),
    Metric(
        "faena_dead_oldest_seconds",
        "gauge",
        ("queue",),
        "How long ago the dead job died that nobody has dealt with for longest; 0 without any.",
        "broker",
        _each(lambda one: (one.oldest_dead_us or 0) / 1e6),
        unit="seconds",
    ),
    Metric(
        "faena_queue_held",
        "gauge",
        ("queue",),
        "1 while the queue is paused or held for another reason, else 0.",
        "broker",
        _each(lambda one: float(bool(one.holds))),
        aliases=seed.PAUSED,
    ),
    Metric(
        "faena_workers",
        "gauge",
        ("queue",),
        "Worker processes that serve the queue.",
        "broker",
        _each(lambda one: len(one.workers)),
        aliases=seed.WORKERS,
    ),
    Metric(
        "faena_worker_slots",
        "gauge",
        ("queue",),
        "How many jobs of the queue all its workers together can run at a time.",
        "broker",
        _each(lambda one: one.slots),
    ),
    Metric(
        "faena_slot_utilization_ratio",
        "gauge",
        ("queue",),
        "The part of these slots that is in use; 0 without workers.",
        "broker",
        _each(lambda one: one.utilization or 0.0),
        unit="ratio",
    ),
    Metric(
        "faena_tenant_live_jobs",
        "gauge",
        ("queue", "tenant"),
        f'Jobs of a tenant that wait or run, for those that have most. "{OTHERS}" has the others, '
        "and jobs without a tenant.",
        "broker",
        _by_tenant(lambda one: one.live),
    ),
    Metric(
        "faena_tenant_running_jobs",
        "gauge",
        ("queue", "tenant"),
        "Jobs of these tenants that run.",
        "broker",
        _by_tenant(lambda one: one.running),
    ),
)
