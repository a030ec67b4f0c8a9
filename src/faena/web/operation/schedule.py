"""What can be done to a schedule."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from faena.errors import ConfigError
from faena.scheduling.options import TIMINGS, iso
from faena.scheduling.view import ScheduleView
from faena.values.duration import describe
from faena.values.names import is_name
from faena.values.numbers import read_whole
from faena.web.access.role import Permission
from faena.web.answer import Refusal, not_found
from faena.web.audit import Record
from faena.web.operation.operation import Asked, Done, Operation, Undo

NOTHING: Final = "none"
"""The value of an option that removes it."""
_REMOVABLE: Final = ("jitter", "start", "end", "count", "tenant", "key")
_WHOLE: Final = ("count", "priority")


class Terms(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """When a schedule fires, and which jobs it makes. What is left out stays as it is; `none`
    removes jitter, start, end, count, tenant or key."""

    cron: str | None = None
    """Five fields, or six with seconds first."""
    every: str | None = None
    """An interval: 90s, 5m, 6h."""
    at: str | list[str] | None = None
    """Instants such as 2026-12-24T18:00."""
    tz: str | None = None
    jitter: str | None = None
    start: str | None = None
    end: str | None = None
    count: str | int | None = None
    overlap: str | None = None
    """allow, skip or queue."""
    missed: str | None = None
    """skip, latest, all, or all(10)."""
    tenant: str | None = None
    key: str | None = None
    priority: str | int | None = None
    payload: Any = None
    payload_json: str | None = None
    """The same as a text, for forms, and for a payload that is null."""


class Edit(Terms, forbid_unknown_fields=True, kw_only=True):
    """A change of a schedule."""

    if_changed: bool = False
    """Whether what is as it is already is left out, instead of being kept from following code."""


class New(Terms, forbid_unknown_fields=True, kw_only=True):
    """A schedule that is not in code."""

    task: str
    """Such as mail/send."""


class Which(msgspec.Struct, forbid_unknown_fields=True):
    """Which options return to the values in code; none: all."""

    term: str | list[str] = ""


def _named(asked: Asked) -> str:
    """The schedule of the path."""
    name = asked.where["schedule"]
    if not is_name(name):
        raise not_found("schedule")
    return name


async def _found(asked: Asked) -> ScheduleView:
    name = _named(asked)
    try:
        return await asked.app.schedules.get(name)
    except ConfigError:
        raise not_found(f"schedule {name}") from None


def _told(view: ScheduleView, *names: str) -> dict[str, Any]:
    """What the trail keeps: never the payload."""
    shown = {name: view.terms.get(name) for name in names if name != "payload"}
    return {
        "when": view.when,
        "state": view.state,
        "edited": sorted(view.edits),
        **({"terms": shown} if shown else {}),
    }


def _terms(given: Terms) -> dict[str, Any]:
    """The options in the words of the library, which checks them."""
    terms: dict[str, Any] = {
        name: value
        for name, value in msgspec.structs.asdict(given).items()
        if name not in {"task", "payload", "payload_json", "if_changed"}
        if value is not None and value not in ("", [])  # a list has no hash
    }
    for name in _REMOVABLE:
        if terms.get(name) == NOTHING:
            terms[name] = None
    for name in _WHOLE:
        if isinstance(terms.get(name), str):
            terms[name] = read_whole(terms[name])
    if isinstance(terms.get("at"), str):
        terms["at"] = [one.strip() for one in terms["at"].split(",")]
    if given.payload is not None:
        terms["payload"] = given.payload
    elif given.payload_json:
        try:
            terms["payload"] = msgspec.json.decode(given.payload_json)
        except (msgspec.DecodeError, RecursionError):
            raise Refusal(422, "invalid", "the payload must be JSON") from None
    return terms


def written(view: ScheduleView) -> dict[str, str]:
    """Its options as the form has them."""
    terms = view.terms
    ((kind, value),) = terms["when"].items()
    found: dict[str, str] = dict.fromkeys(("cron", "every", "at"), "")
    if kind == "at":
        found["at"] = ", ".join(map(iso, value))
    else:
        found[kind] = value if kind == "cron" else describe(value).replace(" ", "")
    return found | {
        "tz": terms["tz"],
        "start": iso(terms["start"]) if terms["start"] else "",
        "end": iso(terms["end"]) if terms["end"] else "",
        "count": str(terms["count"] or ""),
        "missed": terms["missed"],
        "overlap": terms["overlap"],
        "tenant": terms["tenant"] or "",
        "priority": str(terms["priority"]),
    }


async def _create(asked: Asked) -> Done:
    name, given = asked.where["schedule"], asked.given
    terms = _terms(given)
    if sum(one in terms for one in TIMINGS) != 1:
        raise Refusal(422, "invalid", "a schedule must have one of cron, every and at")
    view = await asked.app.schedules.create(name, given.task, by=asked.by, **terms)
    return Done(view.to_dict(), None, _told(view))


async def _edit(asked: Asked) -> Done:
    before, terms = await _found(asked), _terms(asked.given)
    if asked.given.if_changed:
        was = written(before)
        terms = {name: one for name, one in terms.items() if _text(one) != was.get(name)}
        if not terms:
            raise Refusal(422, "invalid", "nothing was changed in this form")
    names = ["when" if one in TIMINGS else one for one in terms]
    view = await asked.app.schedules.edit(before.name, by=asked.by, **terms)
    return Done(view.to_dict(), _told(before, *names), _told(view, *names))


async def _reset(asked: Asked) -> Done:
    before, term = await _found(asked), asked.given.term
    names = [term] if isinstance(term, str) else term
    chosen = ["cron" if one == "when" else one for one in names if one]
    view = await asked.app.schedules.reset(before.name, *chosen, by=asked.by)
    return Done(view.to_dict(), _told(before), _told(view))


async def _pause(asked: Asked) -> Done:
    before = await _found(asked)
    view = await asked.app.schedules.pause(before.name, by=asked.by)
    return Done(view.to_dict(), _told(before), _told(view))


async def _resume(asked: Asked) -> Done:
    before = await _found(asked)
    view = await asked.app.schedules.resume(before.name, by=asked.by)
    return Done(view.to_dict(), _told(before), _told(view))


async def _run(asked: Asked) -> Done:
    view = await _found(asked)
    handle = await asked.app.schedules.run(view.name, by=asked.by)
    made = {"queue": handle.queue, "job": handle.id}
    return Done(made, None, made)


async def _remove(asked: Asked) -> Done:
    before = await _found(asked)
    await asked.app.schedules.remove(before.name, by=asked.by)
    return Done({"removed": before.name}, _told(before), None)


def _text(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)


def _undo_edit(record: Record) -> Undo | None:
    """Back to the values in code, for what had not been edited before."""
    before: Any = record.before or {}
    names = [*before.get("terms", ())]
    if any(value not in {None, ""} for value in map(record.arguments.get, _PAYLOADS)):
        names.append("payload")
    if not names or {*names} & {*before.get("edited", ())}:
        return None
    return Undo("schedules.reset", {**record.where, "term": names})


_PAYLOADS: Final = ("payload", "payload_json")


def _opposite(operation: str) -> Any:
    def undo(record: Record) -> Undo | None:
        before, after = record.before or {}, record.after or {}
        is_same = before.get("state") == after.get("state")
        return None if is_same else Undo(operation, {**record.where})

    return undo


def _operation(
    name: str,
    text: str,
    told: str,
    do: Any,
    *,
    needs: Permission = Permission.OPERATE,
    **more: Any,
) -> Operation:
    return Operation(
        name=f"schedules.{name}",
        path=f"/schedules/{{schedule}}/{name}",
        text=text,
        told=told,
        do=do,
        needs=needs,
        **more,
    )


OPERATIONS: Final = (
    _operation(
        "create",
        "Create a schedule that is not in code.",
        "Schedule {schedule} is there",
        _create,
        needs=Permission.ADMINISTER,
        arguments=New,
    ),
    _operation(
        "edit",
        "Change a schedule, for all workers.",
        "Schedule {schedule} is changed",
        _edit,
        needs=Permission.ADMINISTER,
        arguments=Edit,
        undo=_undo_edit,
    ),
    _operation(
        "reset",
        "Return options of a schedule to the values in code.",
        "Schedule {schedule} follows the code again",
        _reset,
        needs=Permission.ADMINISTER,
        arguments=Which,
    ),
    _operation(
        "pause",
        "Fire a schedule no more until it is resumed.",
        "Schedule {schedule} is paused",
        _pause,
        undo=_opposite("schedules.resume"),
    ),
    _operation(
        "resume",
        "Fire a paused schedule again.",
        "Schedule {schedule} fires again",
        _resume,
        undo=_opposite("schedules.pause"),
    ),
    _operation("run", "Make a job of a schedule now.", "Schedule {schedule} has made a job", _run),
    _operation(
        "remove",
        "Remove a schedule that is not in code; its jobs stay.",
        "Schedule {schedule} is removed",
        _remove,
        needs=Permission.ADMINISTER,
    ),
)
