"""What can be done to a whole queue."""

from __future__ import annotations

from typing import Final

import msgspec

from faena.queue import Queue
from faena.web.access.role import Permission
from faena.web.answer import not_found
from faena.web.audit import Record
from faena.web.operation.operation import Asked, Done, Operation, Undo


class Pause(msgspec.Struct, forbid_unknown_fields=True):
    """How a queue is paused."""

    reason: str = "pause"
    lasting: str | None = None
    """A duration such as 5m; none: until it is resumed."""


class Resume(msgspec.Struct, forbid_unknown_fields=True):
    """Which hold is ended."""

    reason: str = "pause"


def queue_of(asked: Asked) -> Queue:
    """The queue of the path."""
    name = asked.where["queue"]
    if name not in asked.app.queues:
        raise not_found(f"queue {name}")
    return asked.app.queues[name]


async def _holds(queue: Queue) -> list[str]:
    return sorted(hold.reason for hold in (await queue.overview()).holds)


async def _pause(asked: Asked) -> Done:
    queue, given = queue_of(asked), asked.given
    before = await _holds(queue)
    is_new = await queue.pause(reason=given.reason, lasting=given.lasting, by=asked.by)
    return Done({"is_new": is_new}, before, await _holds(queue))


async def _resume(asked: Asked) -> Done:
    queue = queue_of(asked)
    before = await _holds(queue)
    was_held = await queue.resume(reason=asked.given.reason, by=asked.by)
    return Done({"was_held": was_held}, before, await _holds(queue))


def _undo_pause(record: Record) -> Undo | None:
    """A hold that was there before, with another end perhaps, stays."""
    reason = record.arguments.get("reason", "pause")
    if reason in (record.before or ()):
        return None
    return Undo("queues.resume", {**record.where, "reason": reason})


def _undo_resume(record: Record) -> Undo | None:
    reason = record.arguments.get("reason", "pause")
    if reason not in (record.before or ()):
        return None
    return Undo("queues.pause", {**record.where, "reason": reason})


OPERATIONS: Final = (
    Operation(
        name="queues.pause",
        path="/queues/{queue}/pause",
        needs=Permission.OPERATE,
        text="Start no more jobs of a queue; running ones go on.",
        arguments=Pause,
        do=_pause,
        told="{queue} is held: {reason}",
        undo=_undo_pause,
    ),
    Operation(
        name="queues.resume",
        path="/queues/{queue}/resume",
        needs=Permission.OPERATE,
        text="End a hold of a queue.",
        arguments=Resume,
        do=_resume,
        told="{queue} is released: {reason}",
        undo=_undo_resume,
    ),
)
