"""What is decided about dead jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from faena.deadletter.views import Dealt
from faena.web.access.role import Permission
from faena.web.answer import not_found
from faena.web.operation.operation import Asked, Done, Operation
from faena.web.operation.queue import queue_of

_MOST: Final = 200


class Chosen(msgspec.Struct, forbid_unknown_fields=True):
    """Some dead jobs of one queue."""

    job: str | list[str]
    """One id, or up to 200."""
    reason: str = ""


class Redrive(msgspec.Struct, forbid_unknown_fields=True):
    """All pending dead jobs that match, as new jobs, at a rate."""

    tenant: str | None = None
    task: str | None = None
    error: str | None = None
    fingerprint: str | None = None
    older_than: str | None = None
    newer_than: str | None = None
    rate: str | None = None
    """The most jobs per time, such as 50/s."""
    canary: int = 0
    """So many first; the others follow when all of these have completed."""
    failures: int | None = None
    """Stop when more than this many die again."""
    reason: str = "redrive"


def _ids(asked: Asked) -> Sequence[str]:
    ids = [asked.given.job] if isinstance(asked.given.job, str) else asked.given.job
    if not 0 < len(ids) <= _MOST:
        raise not_found(f"selection of 1 to {_MOST} jobs")
    return ids


def _answer(dealt: Sequence[Dealt]) -> Done:
    rows = [{"job": one.id, "new_id": one.new_id, "refused": one.refused} for one in dealt]
    done = sum(one.refused is None for one in dealt)
    answer = {"done": done, "refused": len(rows) - done, "jobs": rows}
    return Done(answer, {"jobs": len(rows)}, {"done": done, "refused": len(rows) - done})


async def _retry(asked: Asked) -> Done:
    queue, reason = queue_of(asked).name, asked.given.reason or "manual retry"
    desk = asked.app.dead_letters
    return _answer(await desk.retry_many_as_new(queue, _ids(asked), by=asked.by, reason=reason))


async def _discard(asked: Asked) -> Done:
    queue, reason = queue_of(asked).name, asked.given.reason
    desk = asked.app.dead_letters
    return _answer(await desk.discard(queue, *_ids(asked), by=asked.by, reason=reason))


async def _resolve(asked: Asked) -> Done:
    queue, reason = queue_of(asked).name, asked.given.reason
    desk = asked.app.dead_letters
    return _answer(await desk.resolve(queue, *_ids(asked), by=asked.by, reason=reason))


async def _redrive(asked: Asked) -> Done:
    given: dict[str, Any] = msgspec.structs.asdict(asked.given)
    queue, desk = queue_of(asked).name, asked.app.dead_letters
    redrive = await desk.start_redrive(queue, by=asked.by, **given)
    return Done({"id": redrive}, None, {"id": redrive})


async def _stop(asked: Asked) -> Done:
    queue, desk = queue_of(asked).name, asked.app.dead_letters
    await desk.stop_redrive(queue, asked.where["redrive"])
    return Done({"state": "stopped"}, None, "stopped")


OPERATIONS: Final = (
    Operation(
        name="dead.retry",
        path="/queues/{queue}/dead/retry",
        needs=Permission.OPERATE,
        text="Make a new job of each of some dead ones.",
        arguments=Chosen,
        do=_retry,
    ),
    Operation(
        name="dead.discard",
        path="/queues/{queue}/dead/discard",
        needs=Permission.ADMINISTER,
        text="Give up dead jobs.",
        arguments=Chosen,
        do=_discard,
    ),
    Operation(
        name="dead.resolve",
        path="/queues/{queue}/dead/resolve",
        needs=Permission.OPERATE,
        text="Mark dead jobs as resolved by hand.",
        arguments=Chosen,
        do=_resolve,
    ),
    Operation(
        name="dead.redrive",
        path="/queues/{queue}/redrives",
        needs=Permission.OPERATE,
        text="Retry all dead jobs that match, at a rate, after a canary.",
        arguments=Redrive,
        do=_redrive,
    ),
    Operation(
        name="dead.stop-redrive",
        path="/queues/{queue}/redrives/{redrive}/stop",
        needs=Permission.OPERATE,
        text="Stop a redrive.",
        do=_stop,
    ),
)
