"""The values that the dead-letter desk returns. Instants are the server's microseconds."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from faena.engine.calls.deadletter import Found, Record
from faena.engine.scripts import Look
from faena.inspection.job_view import read_job
from faena.job import JobView
from faena.outcomes import ErrorRecord
from faena.states import State
from faena.values.view import View


class Status(StrEnum):
    """The status of a dead job at the desk."""

    PENDING = "pending"
    RETRIED = "retried"
    DISCARDED = "discarded"
    RESOLVED = "resolved"


class Resolution(View, frozen=True):
    """The decision on a dead job."""

    action: str
    """retry, redrive, auto, discard or manual."""
    reason: str
    by: str
    at: int


class DeadLetter(View, frozen=True, kw_only=True):
    """A dead job at the desk."""

    apart = ("payload", "headers")

    id: str
    queue: str
    task: str
    tenant: str | None
    status: Status
    died_at: int
    fingerprint: str
    """Shared by jobs that died of the same kind of error."""
    error: ErrorRecord
    """The error it died of: name, message, stack, code."""
    errors: tuple[ErrorRecord, ...]
    """The errors of all attempts; the newest 20."""
    attempts_made: int
    max_attempts: int | None
    """The attempts that its producer set; None: the task's."""
    losses: int
    payload: msgspec.Raw | None
    """None if the spec cannot be read."""
    key: str | None
    headers: dict[str, str]
    origin: str
    """The first job in its line of retries as new; its own id if it is the first."""
    retry_of: str | None
    """The dead job that it was made from."""
    retried_as: str | None
    """The new job that was made from it."""
    auto_retries: int
    """How often its line was retried automatically."""
    resolution: Resolution | None
    retry_at: int | None = None
    """When it will be retried automatically; None if it will not, and always None in lists."""


class DeadPage(View, frozen=True):
    """Some dead jobs; `cursor` continues after them, None if these are the last.

    A page with a cursor may have fewer jobs than requested, if few match the filter.
    """

    items: tuple[DeadLetter, ...]
    cursor: str | None


class DeadGroup(View, frozen=True, kw_only=True):
    """Dead jobs of a queue that died of the same kind of error."""

    queue: str
    fingerprint: str
    name: str
    code: str | None
    sample: str
    pending: int
    total: int
    first_at: int
    last_at: int
    last_id: str


class DeadStats(View, frozen=True, kw_only=True):
    """The desk in numbers."""

    total: int
    by_queue: dict[str, int]
    by_status: dict[str, int]
    new: int
    """Deaths in the last hour."""
    due: int
    """Jobs that wait for an automatic retry, even if that is turned off."""
    oldest_id: str | None
    """The oldest pending job."""
    oldest_at: int | None


class Dealt(msgspec.Struct, frozen=True):
    """The result of a retry, discard or resolve of one dead job."""

    id: str
    new_id: str | None = None
    """The new job, if it was retried."""
    refused: str | None = None
    """Why it was refused: its status or state, or unknown."""


def read_letter(queue: str, found: Found, look: Look) -> DeadLetter:
    """Merge the job with its record at the desk."""
    record, died_at = found.record, int(float(found.position.score))
    view = _view(queue, found.position.id, look)
    last = view.errors[-1] if view and view.errors else None
    return DeadLetter(
        id=found.position.id,
        queue=queue,
        task=view.task if view else record.t,
        tenant=view.tenant if view else record.o or None,
        status=Status(record.s),
        died_at=died_at,
        fingerprint=record.f,
        error=last or ErrorRecord(name=record.e, message="", code=record.c or None),
        errors=view.errors if view else (),
        attempts_made=view.attempts_made if view else 0,
        max_attempts=view.max_attempts if view else None,
        losses=view.losses if view else 0,
        payload=view.payload if view else None,
        key=view.key if view else None,
        headers=view.headers if view else {},
        origin=view.origin if view else found.position.id,
        retry_of=view.retry_of if view else None,
        retried_as=record.reached,
        auto_retries=view.auto_retries if view else 0,
        resolution=resolution_of(record),
    )


def _view(queue: str, job_id: str, look: Look) -> JobView | None:
    """The job itself; None if its spec cannot be read."""
    try:
        view = read_job(queue, job_id, look)
    except (msgspec.MsgspecError, ValueError, IndexError):
        return None
    is_dead = view.state is State.DEAD and not view.is_unreadable
    return view if is_dead else None


def resolution_of(record: Record) -> Resolution | None:
    """The decision, if there is one."""
    if record.r is None:
        return None
    action, reason, by, at = record.r
    return Resolution(action, reason, by, int(at))
