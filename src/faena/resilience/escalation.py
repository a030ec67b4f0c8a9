"""A job for a person: what a job could not do, with all that is needed to do it by hand."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from faena.errors import ConfigError, shown
from faena.job import Job
from faena.outcomes import ErrorRecord
from faena.values.keywords import known_fields

if TYPE_CHECKING:
    from faena.app import Faena
    from faena.producing.handle import Handle

NO_ANSWER: Final[Any] = object()

_LONGEST_TEXT: Final = 2_000
_MOST_ERRORS: Final = 10
_ROOM: Final = 2_000
"""Bytes of an escalation besides its payload and errors, at most."""


@known_fields("escalate")
@dataclass(frozen=True, slots=True)
class Escalate:
    """Hand what cannot be done to a person: a job of `to`, whose handler takes an `Escalation`."""

    to: Any
    """The task that tells a person: it opens a ticket, or sends a message."""

    answer: Any = field(default_factory=lambda: NO_ANSWER)
    """The result of the job that is handed over, such as "we will answer soon"."""

    instructions: str = ""
    """What the person should know, up to 2,000 characters."""

    def __post_init__(self) -> None:
        text: Any = self.instructions
        if not isinstance(text, str) or len(text) > _LONGEST_TEXT:
            raise ConfigError(
                f"escalate instructions must be a string of up to {_LONGEST_TEXT} characters, "
                f"got {shown(text)}",
                field="instructions",
                value=text,
            )


class Escalation(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a job could not do, and why."""

    job_id: str
    queue: str
    task: str
    tenant: str | None = None
    key: str | None = None
    reason: str
    """Why it was handed over."""
    instructions: str = ""
    """What the program says about such cases."""
    payload: Any = None
    """The job's payload as plain values; None as well if it is left out."""
    is_payload_left_out: bool = False
    """Whether payload and errors were too large; `handle(app).view()` has both."""
    errors: tuple[ErrorRecord, ...] = ()
    """Its failed attempts, oldest first, the last ten; a stack only of the last one."""
    attempts_made: int = 0
    enqueued_at: int = 0
    """When the job was enqueued, in the server's microseconds."""
    at: int = 0
    """When it was handed over, or claimed for that."""

    @property
    def commands(self) -> dict[str, str]:
        """What to type to see the job, and to run it again."""
        where = f"{self.queue} {self.job_id}"
        return {"show": f"faena job {where} --payload", "rerun": f"faena rerun {where}"}

    def handle(self, app: Faena) -> Handle[Any]:
        """The job: `await escalation.handle(app).rerun()` runs it again."""
        return app.queues[self.queue].handle(self.job_id, tenant=self.tenant)


class Handed(NamedTuple):
    """What a job hands over."""

    payload: bytes
    """As it was enqueued."""
    reason: str
    error: ErrorRecord | None
    """What the attempt that fell back failed with, if it did."""
    may_wait: bool
    """Whether the job may be put off when the other queue is full."""


def handed_id(job: Job) -> str:
    """The id of the job that another one is handed over to; a rerun is handed over anew."""
    text = f"{job.queue} {job.id} {job.enqueued_us}"
    return f"fallback-{hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}"


def escalation_of(
    job: Job, given: Handed, instructions: str, earlier: Sequence[ErrorRecord], most_bytes: int
) -> Escalation:
    """Everything about a job that fits into `most_bytes`."""
    errors = [*earlier, *([given.error] if given.error else [])][-_MOST_ERRORS:]
    bare = [msgspec.structs.replace(one, stack=None) for one in errors[:-1]]
    told = Escalation(
        job_id=job.id,
        queue=job.queue,
        task=job.task,
        tenant=job.tenant,
        key=job.key,
        reason=given.reason,
        instructions=instructions,
        errors=(*bare, *errors[-1:]),
        attempts_made=job.attempt if given.error else job.attempt - 1,
        enqueued_at=job.enqueued_us,
        at=job.started_us,
    )
    if len(given.payload) + len(msgspec.json.encode(told)) + _ROOM > most_bytes:
        return msgspec.structs.replace(told, errors=(), is_payload_left_out=True)
    return msgspec.structs.replace(told, payload=msgspec.json.decode(given.payload))
