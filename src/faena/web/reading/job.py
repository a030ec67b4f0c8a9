"""Jobs: those of a queue in a state, and one of them; payloads only for those who may see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from faena.inspection.explanation import Explanation
from faena.job import JobView
from faena.producing.handle import Handle
from faena.states import State
from faena.web.access.role import Permission
from faena.web.answer import not_found
from faena.web.payload import veiled
from faena.web.reading.reading import USUAL, Limited, Many, Reading, Rows, Some, Wanted

_SECRET: Final = ("result", "log", "progress")
"""What only those see who may see payloads."""
_FOR_ALL: Final = ("id", "queue", "state", "task", "tenant", "attempts_made", "error", "source")


class Which(msgspec.Struct, forbid_unknown_fields=True):
    """Jobs of a queue in a state."""

    state: State = State.READY
    limit: Limited = USUAL
    cursor: str | None = None
    newest_first: bool = False
    source: Literal["both", "broker", "history"] = "both"
    """Where they are read, if the queue has a history."""


class Whose(msgspec.Struct, forbid_unknown_fields=True):
    """Which job is meant, where tenants have jobs of the same id."""

    tenant: str | None = None


class Shown(msgspec.Struct, forbid_unknown_fields=True):
    """Which job is meant, and how much of it."""

    tenant: str | None = None
    payload: bool = False
    """Payload and headers too, with fields that sound secret veiled."""


class Cause(msgspec.Struct, frozen=True):
    """One reason why a job is where it is."""

    code: str
    until: int | None
    """When it ends on its own."""


class OwnExplanation(msgspec.Struct, frozen=True):
    """What one who sees a single tenant is told: nothing of others, their number included."""

    id: str
    queue: str
    state: str | None
    task: str | None
    tenant: str | None
    attempts_made: int
    error: str | None
    source: str
    reasons: tuple[Cause, ...]


async def _list(wanted: Wanted) -> Rows:
    given = wanted.given
    page = await wanted.queue.jobs(
        given.state,
        limit=given.limit,
        cursor=given.cursor,
        is_newest_first=given.newest_first,
        source=given.source,
    )
    sees = wanted.caller.may(Permission.PAYLOAD)
    return Rows([told(one, sees=sees) for one in page.jobs], page.cursor)


async def _show(wanted: Wanted) -> Mapping[str, Any]:
    wanted.check_payload(is_wanted=wanted.given.payload)
    view = await found_job(wanted)
    shown = told(view, sees=wanted.caller.may(Permission.PAYLOAD))
    if wanted.given.payload:
        shown["payload"] = veiled(_decoded(view.payload))
        shown["headers"] = veiled(dict(view.headers))
    return shown


async def _result(wanted: Wanted) -> Mapping[str, Any]:
    wanted.check_payload(is_wanted=True)
    view = await found_job(wanted)
    return {
        "id": view.id,
        "state": view.state.value,
        "result": veiled(_decoded(view.result or b"null")),
    }


async def _log(wanted: Wanted) -> Mapping[str, Any]:
    wanted.check_payload(is_wanted=True)
    view = await found_job(wanted)
    return {"id": view.id, "state": view.state.value, "log": list(view.log)}


async def _explain(wanted: Wanted) -> Any:
    view = await found_job(wanted)
    explained = await _handle(wanted).explain()
    if wanted.caller.tenant is None:
        return explained
    if explained.tenant not in {None, view.tenant}:
        raise not_found(f"job {view.id}")
    return OwnExplanation(
        **{name: getattr(explained, name) for name in _FOR_ALL if name != "state"},
        state=explained.state.value if explained.state else None,
        reasons=tuple(Cause(one.code, one.until) for one in explained.reasons),
    )


def _handle(wanted: Wanted) -> Handle[Any]:
    tenant = wanted.caller.tenant or wanted.given.tenant
    return wanted.queue.handle(wanted.where["job"], tenant=tenant)


async def found_job(wanted: Wanted) -> JobView:
    """The job of the path; of another tenant's, nothing is told."""
    view = await _handle(wanted).view()
    own = wanted.caller.tenant
    if view is None or (own is not None and view.tenant != own):
        raise not_found(f"job {wanted.where['job']} in {wanted.queue.name}")
    return view


def told(view: JobView, *, sees: bool) -> dict[str, Any]:
    """A job as a dict; results, log lines and progress only for those who may see payloads."""
    shown = view.to_dict()
    for name in _SECRET:
        if sees:
            shown[name] = veiled(shown[name])
        else:
            del shown[name]
    return shown


def _decoded(packed: bytes | msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(bytes(packed) or b"null")
    except (msgspec.DecodeError, RecursionError):
        return None


class Result(msgspec.Struct, frozen=True):
    """What a job returned."""

    id: str
    state: State
    result: Any
    """None if it returned None or has not completed."""


class Log(msgspec.Struct, frozen=True):
    """What a job's handler has written."""

    id: str
    state: State
    log: tuple[str, ...]


def _of_job(name: str, text: str, answers: Any, read: Any, arguments: Any = Whose) -> Reading:
    end = "" if name == "show" else f"/{name}"
    return Reading(
        name=f"jobs.{name}",
        path=f"/queues/{{queue}}/jobs/{{job}}{end}",
        text=text,
        answers=answers,
        read=read,
        arguments=arguments,
        is_for_tenant=True,
        needs=Permission.PAYLOAD if name in {"result", "log"} else Permission.VIEW,
    )


READINGS: Final = (
    Reading(
        name="jobs.list",
        path="/queues/{queue}/jobs",
        text="The jobs of a queue in one state, a page at a time.",
        answers=Many(Some(JobView, hidden=_SECRET)),
        read=_list,
        arguments=Which,
    ),
    _of_job(
        "show",
        "One job: state, times, errors; payload and headers if they are asked for.",
        Some(JobView, hidden=_SECRET, more=("payload", "headers")),
        _show,
        Shown,
    ),
    _of_job("explain", "Why a job waits, or how it ended.", Explanation | OwnExplanation, _explain),
    _of_job("result", "What a job returned.", Result, _result),
    _of_job("log", "What a job's handler has written.", Log, _log),
)
