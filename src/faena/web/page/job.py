"""One job: why it waits or how it ended, what it went through, and what may be done with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec
from starlette.responses import Response

from faena.inspection.explanation import Explanation
from faena.inspection.reason import REASONS
from faena.job import JobView
from faena.producing.handle import Handle
from faena.states import FINISHED, State
from faena.web.access.role import Permission
from faena.web.answer import not_found
from faena.web.page.queue import queue_of
from faena.web.payload import veiled
from faena.web.route import Visit

_MOST_SHOWN: Final = 20_000


class Step(NamedTuple):
    """Something that happened to the job."""

    at: int
    kind: str
    words: str
    values: Mapping[str, str]


class Deed(NamedTuple):
    """What may be done with a job in its state."""

    operation: str
    words: str
    effect: str
    """What it does, to be confirmed."""
    is_danger: bool = False


_DEEDS: Final[tuple[tuple[frozenset[State], Deed], ...]] = (
    (
        frozenset({State.DELAYED}),
        Deed("jobs.promote", "Run now", "The job becomes ready now, before its time."),
    ),
    (
        frozenset({State.READY, State.DELAYED, State.BLOCKED}),
        Deed("jobs.cancel", "Cancel", "The job never starts. It can be rerun later.", True),
    ),
    (
        frozenset({State.RUNNING}),
        Deed("jobs.cancel", "Stop", "The job is asked to stop; its handler ends it.", True),
    ),
    (
        FINISHED,
        Deed("jobs.rerun", "Run again", "The same job runs again, with fresh attempts."),
    ),
    (
        FINISHED - {State.DEAD},
        Deed("jobs.remove", "Remove", "The job and all that is known of it are gone.", True),
    ),
)


async def job(visit: Visit) -> Response:
    """One of a queue's jobs; of another tenant's, nothing is told."""
    queue, name = queue_of(visit), visit.request.path_params["job"]
    tenant = visit.request.query_params.get("of") or None
    handle: Handle[Any] = queue.handle(name, tenant=visit.caller.tenant or tenant)
    view = await handle.view()
    if view is None or (visit.caller.tenant and view.tenant != visit.caller.tenant):
        raise not_found(f"job {name} in {queue.name}: it may have gone with retention")
    explained = await handle.explain()
    is_own = visit.caller.tenant is not None
    sees = visit.caller.may(Permission.PAYLOAD)
    return visit.site.templates.page(
        visit,
        "job.html",
        queue=queue,
        job=view,
        explained=explained,
        says=_generally(explained) if is_own else str(explained),
        start=None if is_own else explained.expected_at,
        steps=_steps(view),
        payload=pretty(bytes(view.payload)) if sees else None,
        headers=dict(view.headers) if sees else None,
        result=pretty(view.result or b"") if sees and view.result else None,
        sees_payloads=sees,
        deeds=[deed for states, deed in _DEEDS if view.state in states],
    )


def _generally(told: Explanation) -> str:
    """Why a job is where it is, for one who sees its tenant only: without numbers, names of jobs
    and reasons of holds, which tell of others."""
    meanings = [REASONS[one.code].meaning for one in told.reasons]
    return "; ".join(dict.fromkeys(meanings))


def _steps(view: JobView) -> list[Step]:
    """What is known to have happened, in order."""
    steps = list[Step]()
    began = view.enqueued_at or view.created_at
    if began:
        steps.append(Step(began, "ready", "Enqueued", {}))
    for error in view.errors:
        if error.at:
            values = {
                "number": str(error.attempt),
                "worker": error.worker or "?",
                "error": error.code or error.name,
            }
            words = "Attempt {number} on {worker}: {error}"
            steps.append(Step(error.at, "dead", words, values))
    if view.state is State.RUNNING and view.started_at:
        values = {"worker": view.worker or "?"}
        steps.append(Step(view.started_at, "running", "Started on {worker}", values))
    if view.due_at and view.state is State.DELAYED:
        steps.append(Step(view.due_at, "delayed", "Becomes ready", {}))
    if view.finished_at and view.state in FINISHED:
        steps.append(Step(view.finished_at, view.state.value, view.state.value, {}))
    return sorted(steps, key=lambda one: one.at)


def pretty(blob: bytes) -> str:
    """JSON for people, with fields veiled that sound secret."""
    try:
        value = veiled(msgspec.json.decode(blob))
    except (msgspec.DecodeError, RecursionError):
        return f"{len(blob)} bytes that are no JSON"
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}\n… {len(blob)} bytes in all"
