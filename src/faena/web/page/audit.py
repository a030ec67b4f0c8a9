"""The audit trail: who has changed what, when, from what to what."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from faena.web.answer import Refusal
from faena.web.audit import Record, Wanted
from faena.web.figure import NONE, Figures
from faena.web.frame import sentence_of
from faena.web.payload import veiled
from faena.web.route import Visit
from faena.web.template import spoken
from faena.web.words import Speaker

_CURSOR: Final = re.compile(r"[1-9][0-9]{0,18}-[0-9]{1,19}")
_TEXT_MAX: Final = 300
_FILTER_MAX: Final = 200
_INSTANTS: Final = frozenset({"at", "since", "until"})
_EARLIEST_US: Final = 1e15
"""Numbers above this are microseconds since 1970."""
_OUTCOMES: Final = ("done", "refused")


class Change(NamedTuple):
    """One thing that is otherwise now."""

    name: str
    before: str
    after: str


class Row(NamedTuple):
    """One record."""

    record: Record
    told: str
    values: Mapping[str, object]
    arguments: Sequence[tuple[str, str]]
    changes: Sequence[Change]
    kind: str


async def audit(visit: Visit) -> Response:
    """The newest first, filtered by the address."""
    query = visit.request.query_params
    before, asked = query.get("before"), _asked(query)
    if before is not None and not _CURSOR.fullmatch(before):
        raise Refusal(422, "invalid", "this is no cursor of the audit trail: begin at its start")
    page = await visit.site.trail.page(before or "+", wanted=_wanted(asked))
    write = _Writer(Speaker(spoken(visit)))
    return visit.site.templates.page(
        visit,
        "audit.html",
        page=page,
        rows=[write.row(visit, one) for one in page.records],
        asked=asked,
        outcomes=_OUTCOMES,
        operations=sorted(visit.site.operations),
        groups=sorted({name.partition(".")[0] for name in visit.site.operations}),
    )


def _asked(query: Mapping[str, str]) -> dict[str, str]:
    """The filters that are set."""
    names = ("who", "what", "target", "outcome", "since", "until")
    found = {name: query.get(name, "").strip() for name in names}
    for name, value in found.items():
        if len(value) > _FILTER_MAX or (value and not value.isprintable()):
            raise Refusal(422, "invalid", f"{name} must be at most {_FILTER_MAX} printable letters")
    return {name: value for name, value in found.items() if value}


def _wanted(asked: Mapping[str, str]) -> Wanted:
    outcome = asked.get("outcome")
    if outcome is not None and outcome not in _OUTCOMES:
        raise Refusal(422, "invalid", f"outcome must be one of {', '.join(_OUTCOMES)}")
    return Wanted(
        who=asked.get("who", ""),
        what=asked.get("what", ""),
        target=asked.get("target", ""),
        is_done=None if outcome is None else outcome == "done",
        since_ms=_instant("since", asked.get("since")),
        until_ms=_instant("until", asked.get("until")),
    )


def _instant(name: str, given: str | None) -> int | None:
    if given is None:
        return None
    try:
        at = datetime.fromisoformat(given)
        return max(1, int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000))
    except (ValueError, OverflowError):
        words = f"{name} must be a time such as 2026-11-16T08:00, got {given[:40]}"
        raise Refusal(422, "invalid", words) from None


class _Writer:
    """Writes records for one reader."""

    def __init__(self, say: Speaker) -> None:
        self._say, self._write = say, Figures(say)

    def row(self, visit: Visit, record: Record) -> Row:
        """One record."""
        operation = visit.site.operations.get(record.operation)
        told, values = sentence_of("" if operation is None else operation.told, record)
        is_done, is_over = record.outcome == "done", bool(record.outcome)
        given = veiled(record.arguments)
        return Row(
            record=record,
            told=told if is_done else "",
            values=values,
            arguments=[(name, self._text(name, value)) for name, value in given.items() if value],
            changes=[*self._changes(veiled(record.before), veiled(record.after))],
            kind="ok" if is_done else "warn" if is_over else "idle",
        )

    def _changes(self, before: Any, after: Any) -> Iterator[Change]:
        if isinstance(before, dict) and isinstance(after, dict):
            for name in {**before, **after}:
                if before.get(name) != after.get(name) and name != "at":
                    was, is_now = before.get(name), after.get(name)
                    yield Change(name, self._text(name, was), self._text(name, is_now))
        elif isinstance(before, list) and isinstance(after, list):
            gone = [one for one in before if one not in after]
            come = [one for one in after if one not in before]
            if gone or come:
                yield Change("", self._text("", gone), self._text("", come))
        elif before != after:
            yield Change("", self._text("", before), self._text("", after))

    def _text(self, name: str, value: Any) -> str:
        """A value for people, not longer than a line or two."""
        if value is None or value in ("", [], {}):
            return NONE
        if isinstance(value, bool):
            return self._say("yes") if value else self._say("no")
        if name in _INSTANTS and isinstance(value, int | float) and value > _EARLIEST_US:
            return self._write.instant(value)
        if isinstance(value, dict):
            parts = [f"{key}: {self._text(key, one)}" for key, one in value.items() if key != "at"]
            text = ", ".join(parts)
        elif isinstance(value, list):
            text = ", ".join(self._text("", one) for one in value)
        else:
            text = str(value)
        return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}…"
