"""One thing that can be changed, with the permission it needs.

From its declaration follow the call of the API (JSON), the form that pages send (fields), and the
record in the audit trail.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from faena.web.access.role import Permission
from faena.web.answer import Refusal, json, see_other, way_back
from faena.web.audit import Record
from faena.web.payload import VEIL, veiled
from faena.web.reading.reading import Reading, encoded, is_among, tag_of
from faena.web.route import Visit

if TYPE_CHECKING:
    from faena.app import Faena

_MOST_FIELDS: Final = 1_200
_OWN: Final = ("token", "back")
"""Fields of a form that are no arguments."""
_UNRECORDED: Final = ("payload", "payload_json", "headers")
"""Arguments that only those may see who may see payloads: the trail has others' eyes."""


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """An operation without arguments."""


class Done(NamedTuple):
    """What has been changed."""

    answer: Any
    """What the API answers."""
    before: Any = None
    after: Any = None


class Undo(NamedTuple):
    """What takes a change back."""

    operation: str
    fields: Mapping[str, object]
    """Of its form; a list is sent as several of the same name, None not at all."""


class Asked(NamedTuple):
    """What is asked of an operation."""

    app: Faena
    by: str
    where: Mapping[str, str]
    """The parts of the path: a queue, a job …"""
    given: Any
    """Its arguments."""
    visit: Visit
    """Who asks, and of which dashboard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One declared operation."""

    name: str
    """As the audit trail has it: `queues.pause`."""
    path: str
    """Below /api: `/queues/{queue}/pause`."""
    needs: Permission
    text: str
    """What it does, in one sentence."""
    arguments: type[msgspec.Struct] = Nothing
    do: Callable[[Asked], Awaitable[Done]]
    method: str = "POST"
    goes_to: Callable[[Any], str] | None = None
    """The page that shows the answer, where a form does not go back."""
    told: str = ""
    """What is said when it is done, with names of its path and arguments: `{queue} is held`."""
    undo: Callable[[Record], Undo | None] | None = None
    """What takes it back, with what was before; None where nothing does."""
    answers: Any = Any
    """The type of the answer."""
    guards: Reading | None = None
    """What If-Match is compared with: the ETag of what is changed."""
    shows: str = ""
    """The part of the answer that a form's page has to show, because it is told once."""

    def undoing(self, record: Record) -> Undo | None:
        """What takes back a change that is done."""
        return None if self.undo is None or record.outcome != "done" else self.undo(record)

    async def answer_api(self, visit: Visit) -> Response:
        """A call of the API."""
        body = await visit.request.body()
        try:
            given = msgspec.json.decode(body or b"{}", type=self.arguments)
        except msgspec.DecodeError as error:
            raise Refusal(422, "invalid", str(error)) from None
        except RecursionError:
            raise Refusal(422, "invalid", "the JSON is nested too deep") from None
        await self._check_match(visit)
        answer, record = await self._carry_out(visit, visit.request.path_params, given)
        return json(answer, headers={"X-Audit-Record": record.id})

    async def answer_form(self, visit: Visit) -> Response:
        """A form of a page: goes back to where it was sent, which shows what was done."""
        fields = await _fields(visit.request)
        names = [part[1:-1] for part in self.path.split("/") if part.startswith("{")]
        where = {name: fields.pop(name) for name in names if name in fields}
        if len(where) < len(names):
            raise Refusal(422, "invalid", f"the form must say {', '.join(sorted(names))}")
        for name, value in {**where, "back": fields.get("back", "")}.items():
            if not isinstance(value, str):
                raise Refusal(422, "invalid", f"the form must say {name} once")
        back = way_back(fields.get("back"))
        chosen = {name: value for name, value in fields.items() if name not in _OWN and value}
        try:
            given = msgspec.convert(chosen, self.arguments, strict=False)
        except msgspec.ValidationError as error:
            raise Refusal(422, "invalid", str(error)) from None
        answer, record = await self._carry_out(visit, where, given)
        if self.shows:
            secret = getattr(answer, self.shows)
            return visit.site.templates.page(
                visit, "once.html", operation=self, secret=secret, back=back, address=visit.address
            )
        back = back if self.goes_to is None else self.goes_to(answer)
        joint = "&" if "?" in back else "?"
        return see_other(visit, f"{back}{joint}done={record.id}")

    async def _carry_out(
        self, visit: Visit, where: Mapping[str, str], given: msgspec.Struct
    ) -> tuple[Any, Record]:
        asked = Asked(visit.app, visit.caller.name, dict(where), given, visit)
        try:
            return await visit.site.trail.keep(
                visit.caller, self.name, where, _recorded(given), lambda: self.do(asked)
            )
        finally:
            visit.site.standings.forget()

    async def _check_match(self, visit: Visit) -> None:
        """Refuse a change of what is no longer as its author has seen it."""
        given = visit.request.headers.get("if-match")
        if given is None:
            return
        if self.guards is None:
            raise Refusal(412, "changed", "this has no ETag: leave out If-Match")
        tag = tag_of(encoded(await self.guards.found(visit)))
        if not is_among(tag, given):
            raise Refusal(412, "changed", "it was changed meanwhile: read it again")


def _recorded(given: msgspec.Struct) -> dict[str, Any]:
    """The arguments as the trail keeps them: without passwords and payloads."""
    told: dict[str, Any] = veiled(msgspec.structs.asdict(given))
    return told | {name: VEIL for name in _UNRECORDED if told.get(name) is not None}


async def _fields(request: Request) -> dict[str, Any]:
    """Fields of a form; one that is there several times is a list."""
    form = await request.form(max_fields=_MOST_FIELDS)
    found: dict[str, Any] = {}
    for name in form:
        values = [value for value in form.getlist(name) if isinstance(value, str)]
        found[name] = values if len(values) > 1 else values[0] if values else ""
    return found
