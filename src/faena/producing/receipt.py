"""The receipt that a producer gets for a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from faena.engine.envelope import NewJob
from faena.engine.scripts import CREATED, Answer
from faena.errors import JobConflict, Overloaded
from faena.options import OnConflict
from faena.producing.handle import Handle
from faena.tenancy.lanes import lane_of, tenant_of
from faena.values.view import View

if TYPE_CHECKING:
    from faena.task import Task

R = TypeVar("R")

_FULL = " at capacity"
_FILLING = " near capacity"


class Receipt(View, Generic[R], frozen=True, kw_only=True):
    """The answer to the enqueue of one job."""

    also = ("is_accepted",)
    apart = ("task", "lane")

    id: str
    """The id of the new job, or of the existing one that it duplicates."""
    status: str = "created"
    """created, duplicate, conflict or overloaded."""
    state: str | None = None
    """The state of the existing job, for duplicate and conflict."""
    retry_after: float = 0.0
    """Seconds to wait before the next try, or before sending more."""
    reason: str | None = None
    """Which queue or tenant is full or almost full, if `retry_after` is set."""
    replaced: str | None = None
    """The waiting job that this one replaced."""
    is_different: bool = False
    """With on_conflict="keep": whether the existing job has another payload, tenant or key."""
    is_member: bool = False
    """Whether a duplicate is a member of the group of this enqueue."""
    durability: str
    """The level that was reached; less than requested if servers did not confirm in time."""
    task: Task[Any, R]
    lane: str | None = None
    """Where the job is."""

    @property
    def handle(self) -> Handle[R]:
        """The handle of the job."""
        task = self.task
        return Handle(task.app, task.queue, self.id, task.handler.result, self.lane)

    @property
    def is_accepted(self) -> bool:
        """Whether the work is waiting, running or done, by this call or an earlier one.

        A duplicate of a dead or cancelled job is not accepted, because the work will not be done.
        A job that retention has removed counts as done.
        """
        is_lost = self.status == "duplicate" and self.state in {"dead", "cancelled"}
        return self.status in {"created", "duplicate"} and not is_lost


def receipt_of(task: Task[Any, R], job: NewJob, answer: Answer, durability: str) -> Receipt[R]:
    """Make the receipt from the server's answer."""
    if answer is CREATED:
        return Receipt(id=job.id, durability=durability, task=task, lane=_lane(task, job))
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
        lane=_lane(task, job),
    )


def _lane(task: Task[Any, Any], job: NewJob) -> str | None:
    """Where the job is, or the one that it duplicates: both are in one shard."""
    is_fair = task.app.queues[task.queue].options.is_fair
    return job.facts.get("lane", lane_of(None)) if is_fair else None


def kept(receipt: Receipt[R], on_conflict: OnConflict) -> Receipt[R]:
    """With on_conflict="keep", turn a conflict into a duplicate of the existing job."""
    if on_conflict == "raise" or receipt.status != "conflict":
        return receipt
    return msgspec.structs.replace(receipt, status="duplicate", is_different=True)


def accepted(receipt: Receipt[R]) -> Receipt[R]:
    """The receipt of a single enqueue, which raises on conflict and overload."""
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
    """Which queue or tenant is full, or almost full."""
    what = f"queue {queue}"
    if code.startswith("TENANT_"):
        tenant = tenant_of(job.facts.get("lane", ""))
        what = f"tenant {tenant} of {what}" if tenant else f"the lane without tenant of {what}"
    return f"{what}{_FULL if code.endswith('OVERLOADED') else _FILLING}"
