"""The vocabulary of one job: what the producer wrote, what a handler sees, what a reader sees."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import msgspec

from faena.codec import codec_for
from faena.outcomes import ErrorRecord
from faena.retry import Terms
from faena.states import State
from faena.values.view import View

SCHEDULE_HEADER = "faena-schedule"
INSTANT_HEADER = "faena-instant"
"""What a schedule says of itself in its jobs; the instant in microseconds."""

BY_HEADER = "faena-by"
"""Who asked for a job by hand."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Input(msgspec.Struct, omit_defaults=True, frozen=True):
    """How a job that this one waited for has ended."""

    state: str
    """completed, dead, cancelled or skipped."""
    result: msgspec.Raw = msgspec.Raw()
    """What it returned, encoded; empty when it did not complete, or all together are too large."""
    error: msgspec.Raw = msgspec.Raw()
    """What it failed with, encoded; empty when it did not."""

    def value(self, type: Any = Any) -> Any:  # noqa: A002 - as msgspec calls it
        """What it returned, as plain values or as a type; None when there is nothing."""
        result = bytes(self.result)
        return codec_for(type).decode(result) if result else None


class Spec(msgspec.Struct, omit_defaults=True):
    """What the producer wrote, immutable once enqueued; `payload` stays encoded until needed.

    What scripts read of it (`read_body` in spec_body.lua) stands before the payload, however large.
    """

    task: str
    tenant: str | None = None
    key: str | None = None
    headers: dict[str, str] = {}
    payload: msgspec.Raw = msgspec.Raw(b"null")
    version: int = 1
    timeout_us: int | None = None
    attempts: int | None = None
    """How many at most, where the producer said so."""
    retry: Terms | None = None
    """The same of its policy."""
    parents: dict[str, Input] = {}
    """In a flow: the nodes it came after, by name."""
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
        """`notes` is where it writes to."""
        self.queue = queue
        self.id = job_id
        self.origin = job_id
        """The first job of its line: its own id, unless it is a dead job, retried at the desk."""
        self.task = spec.task
        self.tenant = spec.tenant
        self.key = spec.key
        self.headers: Mapping[str, str] = spec.headers
        self.parents: Mapping[str, Input] = spec.parents
        """In a flow: how the nodes before it have ended, by their names."""
        self.group: Mapping[str, int] = spec.group
        """In a group's callback: its `total`, and how many are completed, dead and cancelled."""
        self.attempt = attempt
        """From 1; a delivery lost with its worker does not count."""
        self.max_attempts = spec.attempts or 1
        """How many attempts it has at most, by its producer's word or its task's."""
        self.enqueued_us = 0
        self.started_us = 0
        self.losses = 0
        """Deliveries lost with their worker."""
        self.worker = ""
        self.cancelled = False
        """True once somebody asked for the job to stop, its time is over or its lease is lost."""
        self._notes = notes

    @property
    def enqueued_at(self) -> datetime:
        """When the server took the job in, or a finished job was run again by hand."""
        return _moment(self.enqueued_us)

    @property
    def started_at(self) -> datetime:
        """When a worker was given this attempt, by the server's clock."""
        return _moment(self.started_us)

    @property
    def is_last_attempt(self) -> bool:
        """Whether the job is dead if this attempt fails."""
        return self.attempt >= self.max_attempts

    @property
    def schedule(self) -> str | None:
        """The schedule that made it, if one did."""
        return self.headers.get(SCHEDULE_HEADER)

    @property
    def instant(self) -> datetime | None:
        """The instant of its schedule; None of a job that somebody asked for by hand."""
        us = _instant_us(self.headers)
        return None if us is None else _moment(us)

    def attach(self, notes: Notes) -> None:
        """Give the job somewhere to write to."""
        self._notes = notes

    def detach(self) -> None:
        """The job is another worker's now: whatever this handler still says of it is dropped."""
        self._notes = None

    def progress(self, value: Any) -> None:
        """Tell how far the work is: a percentage, or any JSON value. Written soon; latest wins."""
        if (notes := self._notes) is not None:
            notes.progress(self.id, value)

    def log(self, line: str) -> None:
        """Add a line to the job's log; the newest 100 are kept."""
        if (notes := self._notes) is not None:
            notes.log(self.id, line)

    def spend(self, **used: int) -> None:
        """Tell what this attempt has used so far, by unit: `job.spend(tokens=950)`; latest wins.

        It takes the place of the estimate in the windows of limits by cost, before the job is
        settled at the latest: what was not used is free at once, what was used beyond is charged.
        """
        if (notes := self._notes) is not None:
            notes.spend(self.id, used)

    def __repr__(self) -> str:
        return f"<Job {self.queue}/{self.id} {self.task} attempt {self.attempt}>"


class JobView(View, frozen=True, kw_only=True):
    """One job as a reader finds it.

    Instants are whole microseconds since 1970, of the server's clock but for `created_at`, and None
    where nothing says so: an ordinary job leaves no trace of its start once it is completed.
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
    """When its producer made its id, by the producer's own clock and to the millisecond: all that
    is kept of an ordinary job's beginning. None where the producer gave it an id."""
    enqueued_at: int | None
    """When the server took it in, or it was last run again; of a finished job only where it was
    put off before: by a delay, a retry or a snooze."""
    due_at: int | None
    """When a delayed job becomes ready."""
    lease_until: int | None
    """When a running job would be rescued."""
    started_at: int | None
    """When the attempt under way began, else the last one that failed; not of a completed job."""
    worker: str | None
    finished_at: int | None
    is_stopping: bool
    """Running, and asked to stop."""
    result: bytes | None
    """Of a completed job, as JSON; None when it returned None or is not completed. As the type of
    its task: `handle.result()`."""
    errors: tuple[ErrorRecord, ...]
    progress: Any
    log: tuple[str, ...]
    origin: str
    """The first job of its line: its own id, unless it is a dead job, retried at the desk."""
    retry_of: str | None = None
    """The dead job that it was made of."""
    snoozes: int = 0
    """How often its handler has put it off, since it was last run again."""
    snooze_reason: str | None = None
    """Why, the last time; None when it gave no reason."""
    parked: int = 0
    """How often a worker put it off that does not know its task, or only an older version."""
    parked_reason: str | None = None
    """What that worker said, the last time."""
    max_attempts: int | None = None
    """How many attempts its producer gave it; None leaves that to its task."""
    auto_retries: int = 0
    """How often its line was retried by itself."""
    is_unreadable: bool = False
    """Whether nobody can read what was enqueued: it has no task, no payload and no headers then."""

    @property
    def schedule(self) -> str | None:
        """The schedule that made it, if one did."""
        return self.headers.get(SCHEDULE_HEADER)

    @property
    def instant(self) -> int | None:
        """The instant of its schedule; None of a job that somebody asked for by hand."""
        return _instant_us(self.headers)
