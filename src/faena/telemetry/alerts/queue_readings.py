"""Alerts of one queue: what a snapshot and its totals of before say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from faena.engine.calls.alerts import Reading, Totals
from faena.options.thresholds import value_text
from faena.telemetry.alerts.judgement import Bounds, Judgement
from faena.telemetry.snapshot import QueueSnapshot

COUNTED: Final = ("completed", "retried", "dead", "claimed", "rescued", "schedule_missed")
"""The totals that are compared with those of before."""

LEAST_ATTEMPTS: Final = 10
"""With fewer attempts in five minutes, a rate of errors says nothing."""

_LATELY_US: Final = 300_000_000


class Watched(NamedTuple):
    """What an app declares of a queue that it watches."""

    own: Mapping[str, Bounds]
    """The bounds that the queue has for itself."""
    longest_window_us: int
    """Of its limits: so long it may rightly claim nothing."""


class Before(NamedTuple):
    """The totals of a queue at earlier times; None if it was not known then."""

    lately: Totals | None
    hour_ago: Totals | None


def totals_of(queue: QueueSnapshot) -> Totals:
    """What later evaluations compare with."""
    return {name: queue.totals.get(name, 0) for name in COUNTED}


def queue_readings(
    judgement: Judgement, queue: QueueSnapshot, watched: Watched, before: Before
) -> Iterator[Reading | None]:
    """All alerts of one queue."""

    def reading(rule: str, value: float, text: str) -> Reading | None:
        return judgement.reading(rule, queue.queue, value, text, own=watched.own)

    waiting = queue.counts["ready"] + queue.counts["blocked"]
    yield reading("depth", waiting, f"{waiting} jobs wait")
    yield reading("backlog", queue.depth, f"{queue.depth} jobs wait, are to start later, or run")
    wait_us = queue.oldest_us or 0
    yield reading("wait", wait_us, f"the first job has waited {value_text('wait', wait_us)}")
    yield _error_rate(judgement, queue, watched, before.lately)
    lost = _since(queue, before.hour_ago, "rescued")
    yield reading("stalled", lost, f"{lost} jobs lost their worker within an hour")
    used = 100 * (queue.utilization or 0)
    yield reading("utilization", used, f"{used:.0f} % of {queue.slots} slots are in use")
    yield reading("silent", *_silence(queue, watched, before.lately))
    missed = _since(queue, before.hour_ago, "schedule_missed")
    yield reading("missed_schedules", missed, f"{missed} instants did not fire within an hour")


def _since(queue: QueueSnapshot, before: Totals | None, name: str) -> int:
    """How often something happened since then; a queue that was removed begins anew."""
    return 0 if before is None else max(0, queue.totals.get(name, 0) - before.get(name, 0))


def _error_rate(
    judgement: Judgement, queue: QueueSnapshot, watched: Watched, lately: Totals | None
) -> Reading | None:
    failed = _since(queue, lately, "retried") + _since(queue, lately, "dead")
    ended = failed + _since(queue, lately, "completed")
    percent = 100 * failed / ended if ended >= LEAST_ATTEMPTS else 0
    text = f"{failed} of {ended} attempts failed in five minutes, {percent:.0f} %"
    return judgement.reading("error_rate", queue.queue, percent, text, own=watched.own)


def _silence(queue: QueueSnapshot, watched: Watched, lately: Totals | None) -> tuple[float, str]:
    """How long jobs have been ready while nobody claims any."""
    waited_us = queue.oldest_us or 0
    waited = value_text("silent", waited_us)
    if queue.holds or not queue.counts["ready"]:
        return 0, "jobs are claimed"
    if not queue.workers:
        return waited_us, f"no worker serves the queue, the first job has waited {waited}"
    has_room = queue.is_open and queue.counts["running"] < queue.slots
    is_limited = watched.longest_window_us > _LATELY_US
    if has_room and not is_limited and lately and not _since(queue, lately, "claimed"):
        told = f"workers have claimed nothing for five minutes, the first job has waited {waited}"
        return waited_us, told
    return 0, "jobs are claimed"
