"""One job: as its producer wrote it, as its handler sees it, and as a reader sees it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, Literal, Protocol

import msgspec

from faena.codec import codec_for
from faena.outcomes import ErrorRecord
from faena.retry import Terms
from faena.states import State
from faena.values.view import View

SCHEDULE_HEADER = "faena-schedule"
INSTANT_HEADER = "faena-instant"
"""Headers that a schedule adds to its jobs; the instant is in microseconds."""

BY_HEADER = "faena-by"
"""Who enqueued a job by hand."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Input(msgspec.Struct, omit_defaults=True, frozen=True):
    """How a job that this one waited for ended."""

    state: str
    """completed, dead, cancelled or skipped."""
    result: msgspec.Raw = msgspec.Raw()
    """What it returned, encoded; empty if it did not complete, or if all inputs are too large."""
    error: msgspec.Raw = msgspec.Raw()
    """Its error, encoded; empty if it did not fail."""

    def value(self, type: Any = Any) -> Any:  # noqa: A002 - as msgspec calls it
        """What it returned, as plain values or as `type`; None when there is nothing."""
        result = bytes(self.result)
        return codec_for(type).decode(result) if result else None


class Spec(msgspec.Struct, omit_defaults=True):
    """What the producer wrote, immutable once enqueued; `payload` stays encoded until needed.

    Fields that scripts read (spec_body.lua) come before the payload, which may be large.
    """

    task: str
    tenant: str | None = None
    key: str | None = None
    headers: dict[str, str] = {}
    payload: msgspec.Raw = msgspec.Raw(b"null")
    version: int = 1
    timeout_us: int | None = None
    attempts: int | None = None
    """The most attempts, if the producer set it."""
    retry: Terms | None = None
    """The retry policy, if the producer set it."""
    parents: dict[str, Input] = {}
    """In a flow: the nodes it waited for, by name."""
    group: dict[str, int] = {}
    """In the callback of a group: how many members it had, and how they ended."""


def _moment(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)


def _instant_us(headers: Mapping[str, str]) -> int | None:
    us = headers.get(INSTANT_HEADER)
    return None if us is None else int(us)


class Notes(Protocol):
    """Where a running job's progress and log lines go."""

    def progress(self, job_id: str, value: Any) -> None: ...
    def log(self, job_id: str, line: str) -> None: ...
    def spend(self, job_id: str, used: Mapping[str, int]) -> None: ...


class Job:
    """A running job, as its handler sees it."""

    __slots__ = (
        "_notes",
        "_payload",
        "attempt",
        "cancelled",
        "enqueued_us",
        "group",
        "headers",
        "id",
        "key",
        "losses",
        "max_attempts",
        "origin",
        "parents",
        "queue",
        "started_us",
        "task",
        "tenant",
        "worker",
    )

    def __init__(
        self, queue: str, job_id: str, spec: Spec, *, attempt: int = 1, notes: Notes | None = None
    ) -> None:
        """`notes` takes its progress, log lines and costs."""
        self.queue: str = queue
        """The name of its queue."""
        self.id: str = job_id
        """The same in every attempt: a key that makes work idempotent."""
        self.origin: str = job_id
        """The first job of its line of retries: its own id, unless it is a dead job's retry."""
        self.task: str = spec.task
        """The name of its task."""
        self.tenant: str | None = spec.tenant
        """Whose job it is, if its producer said so."""
        self.key: str | None = spec.key
        """The key that orders or limits it, if it has one."""
        self.headers: Mapping[str, str] = spec.headers
        """What its producer and middleware have added."""
        self.parents: Mapping[str, Input] = spec.parents
        """In a flow: how the nodes it waited for ended, by name."""
        self.group: Mapping[str, int] = spec.group
        """In a group's callback: its `total`, and how many are completed, dead and cancelled."""
        self.attempt = attempt
        """From 1; a delivery lost with its worker does not count."""
        self.max_attempts = spec.attempts or 1
        """The most attempts it may have, set by its producer or its task."""
        self.enqueued_us = 0
        self.started_us = 0
        self.losses = 0
        """Deliveries lost with their worker."""
        self.worker: str = ""
        """The worker that runs it."""
        self.cancelled = False
        """True once its cancellation was requested, its time is over or its lease is lost."""
        self._notes = notes
        self._payload = spec.payload

    @property
    def payload_digest(self) -> str:
        """The same for the same bytes."""
        return blake2b(bytes(self._payload), digest_size=16).hexdigest()

    @property
    def enqueued_at(self) -> datetime:
        """When the server stored the job, or a finished job was rerun."""
        return _moment(self.enqueued_us)

    @property
    def started_at(self) -> datetime:
        """When a worker claimed this attempt, by the server's clock."""
        return _moment(self.started_us)

    @property
    def is_last_attempt(self) -> bool:
        """Whether the job dies if this attempt fails."""
        return self.attempt >= self.max_attempts

    @property
    def schedule(self) -> str | None:
        """The schedule that created it, if any."""
        return self.headers.get(SCHEDULE_HEADER)

    @property
    def instant(self) -> datetime | None:
        """The instant of its schedule; None if the job was enqueued by hand."""
        us = _instant_us(self.headers)
        return None if us is None else _moment(us)

    def attach(self, notes: Notes) -> None:
        """Set where progress, log lines and costs go."""
        self._notes = notes

    def detach(self) -> None:
        """Drop what this handler still writes: the job belongs to another worker now."""
        self._notes = None

    def progress(self, value: Any) -> None:
        """Report progress: a percentage, or any JSON value. Written soon; the latest wins."""
        if (notes := self._notes) is not None:
            notes.progress(self.id, value)

    def log(self, line: str) -> None:
        """Add a line to the job's log; the newest 100 are kept."""
        if (notes := self._notes) is not None:
            notes.log(self.id, line)

    def spend(self, **used: int) -> None:
        """Report what this attempt has used so far, by unit: `job.spend(tokens=950)`; latest wins.

        It replaces the estimate in the limits by cost, at the latest before the job is settled:
        what was not used is free again at once, and what exceeds the estimate is charged.
        """
        if (notes := self._notes) is not None:
            notes.spend(self.id, used)

    def __repr__(self) -> str:
        return f"<Job {self.queue}/{self.id} {self.task} attempt {self.attempt}>"


class JobView(View, frozen=True, kw_only=True):
    """One job as a reader sees it.

    Instants are whole microseconds since 1970 by the server's clock, except `created_at`. They are
    None where unknown: the start of an ordinary job is not kept once it has completed.
    """

    also = ("schedule", "instant")
    apart = ("payload", "headers")

    id: str
    queue: str
    state: State
    task: str
    payload: msgspec.Raw
    """JSON, as it was enqueued: `msgspec.json.decode(view.payload)`."""
    tenant: str | None
    key: str | None
    priority: int
    headers: dict[str, str]
    attempts_made: int
    """Attempts that have ended and count: those that failed, and the one that completed it."""
    losses: int
    """Deliveries lost with their worker."""
    created_at: int | None = None
    """When its id was made, by the producer's clock, to the millisecond. For an ordinary job it is
    the only record of its beginning. None where the producer chose the id."""
    enqueued_at: int | None
    """When the server stored it, or it was last rerun. Of a finished job, known only if it was
    delayed, retried or snoozed before."""
    due_at: int | None
    """When a delayed job becomes ready."""
    lease_until: int | None
    """When a running job would be rescued."""
    started_at: int | None
    """When the current attempt began, or the last failed one; unknown for a completed job."""
    worker: str | None
    finished_at: int | None
    is_stopping: bool
    """Whether it is running and its cancellation was requested."""
    result: bytes | None
    """The result of a completed job, as JSON; None if it returned None or has not completed.
    `handle.result()` decodes it as the task's type."""
    errors: tuple[ErrorRecord, ...]
    progress: Any
    log: tuple[str, ...]
    origin: str
    """The first job of its line of retries: its own id, unless it is a dead job's retry."""
    retry_of: str | None = None
    """The dead job that it retries as new."""
    snoozes: int = 0
    """How often its handler has snoozed it since it was last rerun."""
    snooze_reason: str | None = None
    """The reason of the last snooze, if one was given and no attempt has failed since."""
    parked: int = 0
    """How often a worker has put it off before its handler began, since it last had it: the worker
    knows no such task or version, or an upstream takes no calls. No attempt is used."""
    parked_reason: str | None = None
    """The reason that worker gave, the last time."""
    fallback: str | None = None
    """The fallback that ended it: a function, `Manual`, or the task that it was handed over to, as
    `queue/task`."""
    handed_to: str | None = None
    """The id of the job of that task."""
    max_attempts: int | None = None
    """The most attempts, if its producer set it; None leaves that to its task."""
    auto_retries: int = 0
    """Automatic retries in its line of retries so far."""
    source: Literal["broker", "history"] = "broker"
    """Where it was read; of what the history has, payload and headers may be missing."""
    ended: str | None = None
    """In the history, how it ended, in more words than states: also expired, removed, replaced."""
    is_unreadable: bool = False
    """Whether its spec cannot be decoded; it then has no task, no payload and no headers."""
    part_of: str | None = None
    """What it is a node, a member or a callback of: `flow queue/id` or `group queue/id`."""

    @property
    def schedule(self) -> str | None:
        """The schedule that created it, if any."""
        return self.headers.get(SCHEDULE_HEADER)

    @property
    def instant(self) -> int | None:
        """The instant of its schedule; None if the job was enqueued by hand."""
        return _instant_us(self.headers)
