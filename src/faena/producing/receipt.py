"""What a producer is told of a job that it has sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from faena.engine.envelope import NewJob
from faena.engine.scripts import CREATED, Answer
from faena.errors import JobConflict, Overloaded
from faena.options import OnConflict
from faena.producing.handle import Handle
from faena.tenancy.lanes import tenant_of
from faena.values.view import View

if TYPE_CHECKING:
    from faena.task import Task

R = TypeVar("R")

_FULL = " at capacity"
_FILLING = " near capacity"


class Receipt(View, Generic[R], frozen=True, kw_only=True):
    """What became of an enqueued job."""

    also = ("is_accepted",)
    apart = ("task",)

    id: str
    """The job that counts: the new one, or the one this is a duplicate of."""
    status: str = "created"
    """created, duplicate, conflict or overloaded."""
    state: str | None = None
    """Of the job that was there before, for duplicate and conflict."""
    retry_after: float = 0.0
    """Seconds the producer should wait: until it tries again, or before it sends more."""
    reason: str | None = None
    """What is or grows too deep, where there is a wait: the queue, or a tenant of it."""
    replaced: str | None = None
    """The waiting job that this one took the place of."""
    is_different: bool = False
    """With on_conflict="keep": whether the job that is kept has another payload, tenant or key."""
    is_member: bool = False
    """Whether a duplicate belongs to the group that this one was to join."""
    durability: str
    """What was reached: less than asked for when the servers did not confirm in time."""
    task: Task[Any, R]

    @property
    def handle(self) -> Handle[R]:
        """The job, to wait for or to change."""
        return self.task.handle(self.id)

    @property
    def is_accepted(self) -> bool:
        """Whether the work is on the queue, runs or is done, by this call or an earlier one.

        A duplicate of a job that is dead or was cancelled is not accepted: nobody will do the work.
        One that retention has removed counts as done.
        """
        is_lost = self.status == "duplicate" and self.state in {"dead", "cancelled"}
        return self.status in {"created", "duplicate"} and not is_lost


def receipt_of(task: Task[Any, R], job: NewJob, answer: Answer, durability: str) -> Receipt[R]:
    """What the server's answer means."""
    if answer is CREATED:
        return Receipt(id=job.id, durability=durability, task=task)
    code, detail, extra, replaced = answer
    word = code.removeprefix("TENANT_")
    is_member = word == "MEMBER"
    word = "DUPLICATE" if is_member else word
    is_pressed = word in {"OVERLOADED", "SLOWED"}
    return Receipt(
        id=str(detail) if word == "DUPLICATE" else job.id,
        status="created" if word == "SLOWED" else word.lower(),
        state=str(extra) if word in {"DUPLICATE", "CONFLICT"} else None,
        retry_after=float(detail) / 1e6 if is_pressed else 0.0,
        reason=_pressed(task.queue, code, job) if is_pressed else None,
        replaced=replaced,
        is_member=is_member,
        durability=durability,
        task=task,
    )


def kept(receipt: Receipt[R], on_conflict: OnConflict) -> Receipt[R]:
    """A conflict as the producer wants it: as it is, or a duplicate of the job that is there."""
    if on_conflict == "raise" or receipt.status != "conflict":
        return receipt
    return msgspec.structs.replace(receipt, status="duplicate", is_different=True)


def accepted(receipt: Receipt[R]) -> Receipt[R]:
    """The receipt of a single call, which raises what a list of them only says."""
    if receipt.status == "overloaded":
        reason = str(receipt.reason)
        raise Overloaded(
            f"{reason.removesuffix(_FULL)} is full: try again in {receipt.retry_after:g} s",
            retry_after=receipt.retry_after,
            reason=reason,
        )
    if receipt.status == "conflict":
        raise JobConflict(
            f"job {receipt.id} exists with another task, payload, tenant or key; "
            f"it is {receipt.state}",
            op="enqueue",
        )
    return receipt


def _pressed(queue: str, code: str, job: NewJob) -> str:
    """What is full, or on its way to be."""
    what = f"queue {queue}"
    if code.startswith("TENANT_"):
        tenant = tenant_of(job.facts.get("lane", ""))
        what = f"tenant {tenant} of {what}" if tenant else f"the lane without tenant of {what}"
    return f"{what}{_FULL if code.endswith('OVERLOADED') else _FILLING}"
