"""What is done to many jobs at once, as bulk actions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import msgspec

from faena.bulk.action import ACTIONS
from faena.bulk.bulks import Chosen
from faena.bulk.record import BulkView
from faena.web.access.role import Permission
from faena.web.answer import Refusal
from faena.web.audit import Record
from faena.web.finding import query_of, total_of
from faena.web.operation.operation import Asked, Done, Operation, Undo

_OPERATE, _ADMINISTER = Permission.OPERATE, Permission.ADMINISTER
NEEDS: Final[Mapping[str, Permission]] = {
    name: _ADMINISTER if name in {"remove", "discard"} else _OPERATE for name in ACTIONS
}
"""The permission that each action needs."""
_TEXTS: Final = {
    "promote": "Make delayed jobs ready now.",
    "cancel": "Cancel jobs, or ask running ones to stop.",
    "rerun": "Run ended jobs again: the same jobs.",
    "retry": "Make a new job of each of some dead ones.",
    "resolve": "Mark dead jobs as resolved by hand.",
    "discard": "Give up dead jobs.",
    "remove": "Remove completed or cancelled jobs for good.",
}


class Some(msgspec.Struct, forbid_unknown_fields=True):
    """Some jobs, or all that match a search."""

    job: str | list[str] = []
    """Up to 200, each as `QUEUE ID`, or `QUEUE ID TENANT` where tenants have jobs of one id."""
    q: str | None = None
    """A search, as the page of it has it: `state:ready tenant:acme`."""
    reason: str = ""


def chosen_of(job: str | list[str]) -> list[Chosen]:
    """Jobs that were chosen one by one."""
    words = [one.split() for one in ([job] if isinstance(job, str) else job)]
    if any(not 2 <= len(one) <= 3 for one in words):
        raise Refusal(422, "invalid", "a job must be its queue, its id and perhaps its tenant")
    return [Chosen(*one) for one in words]


async def _begin(action: str, asked: Asked) -> Done:
    given: Some = asked.given
    query, total = None, 0
    if given.q is not None:
        query = query_of(asked.visit.caller, given.q)
        if not query.terms or query.is_past:
            raise Refusal(422, "invalid", "a bulk action needs a search of live jobs, with a term")
        total = await total_of(asked.visit, query, ACTIONS[action].states)
    jobs = chosen_of(given.job)
    ident = await asked.app.bulk.begin(
        action, query=query, jobs=jobs, by=asked.by, reason=given.reason, total=total
    )
    asked.visit.site.carrying.wake()
    return Done({"id": ident}, None, {"id": ident, "jobs": len(jobs) or given.q})


async def _stop(asked: Asked) -> Done:
    before = (await asked.app.bulk.get(asked.where["bulk"])).state
    view = await asked.app.bulk.stop(asked.where["bulk"])
    return Done(_told(view), before, view.state)


async def _resume(asked: Asked) -> Done:
    view = await asked.app.bulk.get(asked.where["bulk"])
    if not asked.visit.caller.may(NEEDS[view.action]):
        words = f"to {view.action} jobs needs the permission {NEEDS[view.action].value}"
        raise Refusal(403, "forbidden", words)
    after = await asked.app.bulk.resume(asked.where["bulk"])
    asked.visit.site.carrying.wake()
    return Done(_told(after), view.state, after.state)


def _told(view: BulkView) -> dict[str, Any]:
    return {"state": view.state, "done": view.done, "refused": view.refused}


def _undo_stop(record: Record) -> Undo | None:
    return Undo("bulk.resume", record.where) if record.before == "running" else None


def _page_of(answer: Any) -> str:
    return f"/bulk/{answer['id']}"


OPERATIONS: Final = (
    *(
        Operation(
            name=f"bulk.{name}",
            path=f"/bulk/{name}",
            needs=needs,
            text=_TEXTS[name],
            arguments=Some,
            do=partial(_begin, name),
            goes_to=_page_of,
            told="The bulk action has begun",
        )
        for name, needs in NEEDS.items()
    ),
    Operation(
        name="bulk.stop",
        path="/bulk/actions/{bulk}/stop",
        needs=_OPERATE,
        text="Stop a bulk action; what was done stays done.",
        do=_stop,
        told="The bulk action is stopped",
        undo=_undo_stop,
    ),
    Operation(
        name="bulk.resume",
        path="/bulk/actions/{bulk}/resume",
        needs=_OPERATE,
        text="Go on with a bulk action that was stopped.",
        do=_resume,
        told="The bulk action goes on",
    ),
)
