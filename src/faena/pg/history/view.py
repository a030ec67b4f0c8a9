"""What reading the history returns."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from faena.values.view import View


class PastJob(View, frozen=True, kw_only=True):
    """One end of one job; a job that was run again has another."""

    apart = ("payload",)

    id: str
    queue: str
    state: str
    """completed, dead, cancelled, expired, removed or replaced; discarded and resolved are what was
    decided about a dead job."""
    finished_at: datetime
    task: str
    tenant: str | None
    key: str | None
    priority: int
    attempts: int
    losses: int
    """Deliveries lost with their worker."""
    enqueued_at: datetime | None
    started_at: datetime | None
    """When its last attempt began."""
    wait_s: float | None
    """From `enqueued_at` to `started_at`."""
    run_s: float | None
    worker: str | None
    error: str | None
    """The name of what it failed with last."""
    code: str | None
    message: str | None
    origin: str
    """The first job of its line of retries."""
    retry_of: str | None
    flow: str | None
    """`queue/id` of its flow."""
    group: str | None
    payload: Any
    """Decoded JSON; None if payloads are not kept, or it was too large."""
    result: Any


class PastPage(View, frozen=True, kw_only=True):
    """Some ends of jobs, newest first; `cursor` asks for the next ones, None for the last page."""

    jobs: tuple[PastJob, ...]
    cursor: str | None


class Spread(View, frozen=True, kw_only=True):
    """How durations are spread, in seconds; None where there was none."""

    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None


class TaskStatistics(View, frozen=True, kw_only=True):
    """How jobs of one task ended in one window of time."""

    queue: str
    task: str
    start: datetime | None
    """When the window began; None for all of the time that was asked for."""
    number: int
    """Jobs that ended, in whatever way."""
    states: Mapping[str, int]
    error_rate: float | None
    """The part of those that ran to their end which died; None if none did."""
    wait: Spread
    run: Spread


class ShardBacklog(View, frozen=True, kw_only=True):
    """What of one shard waits to be stored."""

    shard: str
    entries: int
    size: int
    """In bytes."""
    oldest_s: float | None
    lost: int
    """Jobs that found no room, and are in no gap yet."""


class HistoryView(View, frozen=True, kw_only=True):
    """How far the history is behind, and what it lacks."""

    entries: int
    """Calls whose ended jobs wait in the broker."""
    size: int
    """Their bytes."""
    oldest_s: float | None
    """The age of the oldest, in seconds."""
    is_late: bool
    """Whether that is longer than `History(late=…)`."""
    stored: int
    """Rows that were stored since the first."""
    lost: int
    """Jobs that ended and have no row: in gaps, or counted in the broker."""
    shards: tuple[ShardBacklog, ...]
    """Those where something waits."""
