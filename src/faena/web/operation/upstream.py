"""What can be done to upstreams."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from faena.engine.calls.upstreams import UpstreamView
from faena.web.access.role import Permission
from faena.web.answer import not_found
from faena.web.audit import Record
from faena.web.operation.again import again
from faena.web.operation.operation import Asked, Done, Operation, Undo


class Panic(msgspec.Struct, forbid_unknown_fields=True):
    """Why no call is permitted, and for how long."""

    reason: str
    lasting: str | None = None
    """A duration such as 1h; none: until it is ended."""


async def _view(asked: Asked) -> UpstreamView:
    name = asked.where["upstream"]
    known = {one.name for one in await asked.app.upstream_views()}
    if name not in known:
        raise not_found(f"upstream {name}")
    return await asked.app.upstream_control.view(name)


def _panic_of(view: UpstreamView) -> dict[str, Any] | None:
    panic = view.panic
    if panic is None:
        return None
    return {"reason": panic.reason, "by": panic.by, "until": panic.until, "at": view.at}


async def _panic(asked: Asked) -> Done:
    view, given = await _view(asked), asked.given
    control = asked.app.upstream_control
    is_new = await control.panic(view.name, reason=given.reason, by=asked.by, lasting=given.lasting)
    return Done({"is_new": is_new}, _panic_of(view), _panic_of(await control.view(view.name)))


async def _end_panic(asked: Asked) -> Done:
    view, control = await _view(asked), asked.app.upstream_control
    was_there = await control.end_panic(view.name, by=asked.by)
    return Done({"was_there": was_there}, _panic_of(view), None)


async def _forget(asked: Asked) -> Done:
    view = await _view(asked)
    await asked.app.upstream_control.forget(view.name, by=asked.by)
    return Done({"forgotten": True}, view.state, "forgotten")


async def _forget_totals(asked: Asked) -> Done:
    before = [str(one.amount) for one in await asked.app.budget_views() if one.upstream is None]
    is_done = await asked.app.upstream_control.forget_totals(by=asked.by)
    return Done({"forgotten": is_done}, before, [])


def _undo_panic(record: Record) -> Undo | None:
    if record.before is None:
        return Undo("upstreams.end-panic", record.where)
    return _undo_end(record)


def _undo_end(record: Record) -> Undo | None:
    before = record.before
    if not isinstance(before, dict):
        return None
    return again(before, record.where, "upstreams.panic", reason=before["reason"])


OPERATIONS: Final = (
    Operation(
        name="upstreams.panic",
        path="/upstreams/{upstream}/panic",
        needs=Permission.ADMINISTER,
        text="Permit no call to an upstream, in any process; its jobs wait.",
        arguments=Panic,
        do=_panic,
        told="No call to {upstream} is permitted: {reason}",
        undo=_undo_panic,
    ),
    Operation(
        name="upstreams.end-panic",
        path="/upstreams/{upstream}/end-panic",
        needs=Permission.ADMINISTER,
        text="Permit calls to an upstream again, as its breaker has it.",
        do=_end_panic,
        told="Calls to {upstream} are permitted again",
        undo=_undo_end,
    ),
    Operation(
        name="upstreams.forget",
        path="/upstreams/{upstream}/forget",
        needs=Permission.ADMINISTER,
        text="Remove an upstream that no program declares any more; its costs stay in reports.",
        do=_forget,
        told="{upstream} is forgotten",
    ),
    Operation(
        name="budgets.forget-totals",
        path="/budgets/forget-totals",
        needs=Permission.ADMINISTER,
        text="Remove the budgets of all upstreams together, which no program declares any more.",
        do=_forget_totals,
        told="The total budgets are forgotten",
    ),
)
