"""The counters of queues: how often each thing has ever happened, which the broker keeps.

Each is the number of events of one name, or of answers to `enqueue`, and never decreases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from faena.telemetry.metrics import seed
from faena.telemetry.metrics.metric import Alias, Facts, Metric, Sample


class _Counter(NamedTuple):
    name: str
    counted: str
    """Its name on the broker."""
    text: str
    aliases: tuple[Alias, ...] = ()


_COUNTERS: Final = (
    _Counter("jobs_enqueued", "enqueued", "Jobs that were accepted.", seed.ENQUEUED),
    _Counter(
        "jobs_duplicate",
        "duplicate",
        "Calls of enqueue that found the same job there already.",
        seed.DUPLICATE,
    ),
    _Counter(
        "jobs_conflicting",
        "conflict",
        "Calls of enqueue that were refused: another job has their id.",
    ),
    _Counter(
        "jobs_rejected",
        "overloaded",
        "Jobs that were refused because the queue was full.",
        seed.REJECTED,
    ),
    _Counter(
        "jobs_slowed",
        "slowed",
        "Jobs that were accepted late, because the queue was nearly full.",
        seed.SLOWED,
    ),
    _Counter("jobs_replaced", "replaced", "Jobs that a newer one with their claim replaced."),
    _Counter("jobs_promoted", "promoted", "Delayed jobs that became ready."),
    _Counter("jobs_unblocked", "unblocked", "Blocked jobs that became ready."),
    _Counter("jobs_claimed", "claimed", "Deliveries to workers."),
    _Counter("jobs_completed", "completed", "Jobs that completed.", seed.COMPLETED),
    _Counter(
        "jobs_retried", "retried", "Attempts that failed, with another one to come.", seed.RETRIED
    ),
    _Counter("jobs_dead", "dead", "Jobs that failed for good.", seed.DEAD),
    _Counter("jobs_rescued", "rescued", "Deliveries that were lost with a worker.", seed.RESCUED),
    _Counter("jobs_released", "released", "Jobs that a stopping worker gave back."),
    _Counter("jobs_snoozed", "snoozed", "Jobs that their handler postponed."),
    _Counter(
        "jobs_parked",
        "parked",
        "Jobs that a worker put off: their task is unknown to it, or an upstream takes no calls.",
    ),
    _Counter(
        "jobs_limited",
        "limited",
        "Jobs that were postponed because a provider limited the rate.",
        seed.LIMITED,
    ),
    _Counter("jobs_fell_back", "fell_back", "Jobs whose fallback was used."),
    _Counter("jobs_escalated", "escalated", "Jobs that were handed over to a person."),
    _Counter("jobs_fallback_failed", "fallback_failed", "Jobs that died with their fallback."),
    _Counter("jobs_cancelled", "cancelled", "Jobs that were cancelled."),
    _Counter("jobs_removed", "removed", "Jobs that were removed by hand."),
    _Counter("jobs_rerun", "rerun", "Finished jobs that were run again."),
    _Counter(
        "jobs_retried_as_new",
        "retried_as_new",
        "Dead jobs that were retried as new ones.",
        seed.RETRIED_AS_NEW,
    ),
    _Counter("dead_discarded", "dead_discarded", "Dead jobs that were discarded.", seed.DISCARDED),
    _Counter("dead_resolved", "dead_resolved", "Dead jobs that were resolved."),
    _Counter("flows_completed", "flow_completed", "Flows whose jobs have all completed."),
    _Counter("flows_failed", "flow_failed", "Flows with a job that failed."),
    _Counter("flows_cancelled", "flow_cancelled", "Flows that were cancelled."),
    _Counter("groups_finished", "group_finished", "Groups whose jobs have all ended."),
    _Counter("schedules_fired", "schedule_fired", "Jobs that schedules have created."),
    _Counter(
        "schedules_skipped",
        "schedule_skipped",
        "Instants of schedules without a job, since the last one was still live.",
    ),
    _Counter(
        "schedules_refused", "schedule_refused", "Jobs of schedules that the queue did not accept."
    ),
    _Counter(
        "schedules_missed", "schedule_missed", "Instants of schedules that did not fire in time."
    ),
)


def _totals(name: str) -> Callable[[Facts], Iterator[Sample]]:
    def read(facts: Facts) -> Iterator[Sample]:
        for queue in facts.snapshot.queues if facts.snapshot is not None else ():
            yield Sample((queue.queue,), queue.totals.get(name, 0))

    return read


COUNTERS: Final = tuple(
    Metric(
        f"faena_{one.name}_total",
        "counter",
        ("queue",),
        one.text,
        "broker",
        _totals(one.counted),
        aliases=one.aliases,
    )
    for one in _COUNTERS
)
COUNTED: Final = frozenset(one.counted for one in _COUNTERS)
"""What is counted on the broker and shown."""
