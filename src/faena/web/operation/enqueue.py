"""Enqueues a job by hand."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from faena.errors import unknown_name
from faena.job import BY_HEADER
from faena.web.access.role import Permission
from faena.web.answer import Refusal
from faena.web.operation.operation import Asked, Done, Operation
from faena.web.operation.queue import queue_of

_PLAIN: Final = (
    *("tenant", "key", "delay", "priority", "id", "unique", "replace"),
    *("on_conflict", "durability", "headers", "cost", "attempts", "timeout"),
)


class New(msgspec.Struct, forbid_unknown_fields=True):
    """A job, with the options of `task.enqueue`."""

    task: str
    payload: Any | UnsetType = UNSET
    """Left out for a task that takes none."""
    tenant: str | None = None
    key: str | None = None
    delay: str | None = None
    """How long it waits before it is ready, such as 5m."""
    priority: int | str | None = None
    """1 (soonest) to 100, or a level's name."""
    id: str | None = None
    """The same id is the same job."""
    unique: str | None = None
    """Jobs with the same key are duplicates while one of them is live."""
    replace: str | None = None
    """Replace a waiting job with the same key."""
    on_conflict: str | None = None
    """raise or keep: what is done when another job has the id."""
    durability: str | None = None
    headers: dict[str, str] | None = None
    cost: dict[str, int] | None = None
    attempts: int | None = None
    timeout: str | None = None


class Enqueued(msgspec.Struct, frozen=True):
    """What has become of it."""

    id: str
    queue: str
    task: str
    status: str
    state: str | None
    durability: str


async def _enqueue(asked: Asked) -> Done:
    queue, given = queue_of(asked), asked.given
    if given.task not in queue.tasks:
        raise unknown_name("task", given.task, queue.tasks, field="task", value=given.task)
    options: dict[str, Any] = {
        name: getattr(given, name) for name in _PLAIN if getattr(given, name, None) is not None
    }
    options["headers"] = {**(given.headers or {}), BY_HEADER: asked.by}
    payload = () if given.payload is UNSET else (given.payload,)
    try:
        receipt = await queue.tasks[given.task].enqueue(*payload, **options)
    except TypeError as error:
        raise Refusal(422, "invalid", str(error)) from None
    done = Enqueued(
        id=receipt.id,
        queue=queue.name,
        task=given.task,
        status=receipt.status,
        state=receipt.state,
        durability=str(receipt.durability),
    )
    return Done(done, None, {"id": receipt.id, "status": receipt.status})


OPERATIONS: Final = (
    Operation(
        name="jobs.enqueue",
        path="/queues/{queue}/jobs",
        needs=Permission.ADMINISTER,
        text="Enqueue a job of a task that the app's code declares.",
        arguments=New,
        do=_enqueue,
        answers=Enqueued,
    ),
)
