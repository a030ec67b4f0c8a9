"""What `faena status` knows: a snapshot, the last minutes of each queue, and what is wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

from faena.app import Faena
from faena.cli.output import counted
from faena.engine.calls.upstreams import UpstreamView
from faena.telemetry.alerts.view import AlertsView
from faena.telemetry.snapshot import NodeSnapshot, QueueSnapshot, Snapshot
from faena.telemetry.statistics import TaskStatistics
from faena.values.duration import describe
from faena.values.view import View

WINDOW_MIN: Final = 5
_ERRORS: Final = 0.05
"""The part of failed attempts that is a problem."""
_MEMORY: Final = 0.8
_LATE_US: Final = 60_000_000
"""How long the job that comes first may have been ready."""
_AT_ONCE: Final = 20
_DOWN, _ILL, _SLOW = 3, 2, 1


class QueueStatus(View, frozen=True, kw_only=True):
    """One queue now, and in the last minutes."""

    queue: str
    now: QueueSnapshot
    lately: TaskStatistics
    """All of its tasks in the last five minutes."""

    @property
    def is_held(self) -> bool:
        """Whether it is not served."""
        return bool(self.now.holds)

    @property
    def per_minute(self) -> float:
        """Jobs that completed."""
        return self.lately.completed / WINDOW_MIN

    @property
    def ready(self) -> int:
        """Jobs that could start."""
        return self.now.counts["ready"]


class Problem(View, frozen=True, kw_only=True):
    """One thing that is wrong."""

    severity: int
    """3: something does not work at all, 2: it fails too often, 1: it is late."""
    about: str
    """Its kind and its name, such as `queue mail`."""
    message: str


class Status(View, frozen=True, kw_only=True):
    """An app at one instant, with what is worst first."""

    snapshot: Snapshot
    queues: tuple[QueueStatus, ...]
    problems: tuple[Problem, ...]
    alerts: AlertsView | None
    """None for an app that watches nothing."""


async def read_status(app: Faena) -> Status:
    """Read everything; raises if the broker cannot be reached."""
    snapshot = await app.snapshot(tenants=False)
    room = asyncio.Semaphore(_AT_ONCE)

    async def look(seen: QueueSnapshot) -> QueueStatus:
        async with room:
            found = await app.queues[seen.queue].statistics(f"{WINDOW_MIN}m")
        return QueueStatus(queue=seen.queue, now=seen, lately=found.together())

    queues = await asyncio.gather(*map(look, snapshot.queues))
    alerts = None if app.alert_options is None else await app.alerts(history=0)
    found = [*_problems(snapshot, queues), *_of_alerts(alerts)]
    problems = sorted(found, key=lambda one: (-one.severity, one.about))
    worst = {one.about: one.severity for one in reversed(problems)}
    return Status(
        snapshot=snapshot,
        queues=tuple(sorted(queues, key=lambda one: _rank(one, worst.get(_name(one), 0)))),
        problems=tuple(problems),
        alerts=alerts,
    )


def _rank(one: QueueStatus, severity: int) -> tuple[object, ...]:
    return -severity, -(one.now.oldest_us or 0), -one.now.depth, -one.now.counts["dead"], one.queue


def _name(one: QueueStatus) -> str:
    return f"queue {one.queue}"


def _problems(snapshot: Snapshot, queues: Sequence[QueueStatus]) -> Iterator[Problem]:
    for node in snapshot.nodes:
        yield from _of_node(node)
    for queue in queues:
        yield from _of_queue(queue)
    for upstream in snapshot.upstreams:
        yield from _of_upstream(upstream)
    for feature in snapshot.features:
        if not feature.is_healthy:
            severity = _DOWN if feature.state == "offline" else _ILL
            why = feature.reason or feature.message or feature.source or "no reason was given"
            yield _problem(severity, f"feature {feature.name}", f"{feature.state}: {why}")


def _of_node(node: NodeSnapshot) -> Iterator[Problem]:
    about = f"broker {node.node}"
    if node.latency_ms is None:
        yield _problem(_DOWN, about, "does not answer")
    if node.memory_used is not None and node.memory_max:
        part = node.memory_used / node.memory_max
        if part > _MEMORY:
            yield _problem(_ILL, about, f"{part:.0%} of its memory is used")


def _of_queue(one: QueueStatus) -> Iterator[Problem]:
    about, now = _name(one), one.now
    for hold in now.holds:
        yield _problem(_DOWN, about, f"held by {hold.by}: {hold.reason}; {one.ready} jobs wait")
    if one.ready and not now.workers:
        yield _problem(_DOWN, about, f"{counted(one.ready, 'job')} ready, and no worker")
    rate = one.lately.error_rate
    if rate is not None and rate > _ERRORS:
        yield _problem(_ILL, about, f"{rate:.0%} of attempts failed in {WINDOW_MIN} minutes")
    if now.oldest_us is not None and now.oldest_us > _LATE_US and not now.holds:
        yield _problem(_SLOW, about, f"the first job has waited for {lasting(now.oldest_us)}")


def _of_upstream(view: UpstreamView) -> Iterator[Problem]:
    about = f"upstream {view.name}"
    if view.panic is not None:
        yield _problem(_DOWN, about, f"panic: {view.panic.reason}, by {view.panic.by}")
    elif view.state != "closed":
        failed = f"{view.failed} of {view.calls} calls failed"
        yield _problem(_DOWN, about, f"its breaker is {view.state.replace('_', ' ')}: {failed}")
    elif view.no_calls_until is not None:
        yield _problem(_ILL, about, "has asked for no calls")
    if view.troubled:
        yield _problem(_ILL, about, f"breakers of {counted(view.troubled, 'tenant')} not closed")


def _of_alerts(alerts: AlertsView | None) -> Iterator[Problem]:
    if alerts is None:
        return
    for one in alerts.firing:
        if not one.is_silenced:
            severity = _DOWN if one.severity == "critical" else _SLOW
            since = lasting(alerts.at - one.since)
            about = f"alert {one.rule} {one.subject}"
            yield _problem(severity, about, f"{one.severity} for {since}: {one.text}")


def _problem(severity: int, about: str, message: str) -> Problem:
    return Problem(severity=severity, about=about, message=message)


def lasting(us: int | None) -> str | None:
    """A duration in its two largest units."""
    if us is None:
        return None
    seconds = us / 1e6
    if seconds < 10:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    step = 3_600 if whole >= 86_400 else 60 if whole >= 3_600 else 1
    return describe((whole - whole % step) * 1_000_000)
