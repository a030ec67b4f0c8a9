"""One thing that the API tells, with the permission it needs.

From its declaration follow the route, the check of what is asked for, the ETag of the answer, and
the page of the API's description.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeVar, get_origin

import msgspec
from starlette.responses import Response

from faena.queue import Queue
from faena.values.cursor import read_cursor, write_cursor
from faena.values.view import View
from faena.web.access.caller import Caller
from faena.web.access.role import Permission
from faena.web.answer import Refusal, not_found
from faena.web.route import Visit

if TYPE_CHECKING:
    from faena.app import Faena

T = TypeVar("T")
G = TypeVar("G", bound=msgspec.Struct)

Limited = Annotated[int, msgspec.Meta(ge=1, le=200)]
"""How many there are on a page."""
USUAL: Final = 50


class Anything(msgspec.Struct, forbid_unknown_fields=True):
    """A reading without parameters."""


class Paged(msgspec.Struct, forbid_unknown_fields=True):
    """A page of a list."""

    limit: Limited = USUAL
    cursor: str | None = None
    """Where the page before it ended; none: from the start."""


class Many(NamedTuple):
    """The answer is a page of these: `{"items": […], "cursor": …}`."""

    of: Any


class Some(NamedTuple):
    """The answer is one of these, with fields that only some are shown, or only if asked for."""

    of: Any
    hidden: tuple[str, ...] = ()
    """Fields that it may lack."""
    more: tuple[str, ...] = ()
    """Fields that it may have in addition."""


class Rows(NamedTuple):
    """A page."""

    items: Sequence[Any]
    cursor: str | None


class Wanted(NamedTuple):
    """What is asked of a reading."""

    visit: Visit
    given: Any
    """Its parameters."""

    @property
    def app(self) -> Faena:
        """Whose API it is."""
        return self.visit.app

    @property
    def caller(self) -> Caller:
        """Who asks."""
        return self.visit.caller

    @property
    def where(self) -> Mapping[str, str]:
        """The parts of the path: a queue, a job …"""
        return self.visit.request.path_params

    @property
    def queue(self) -> Queue:
        """The queue of the path."""
        name = self.where["queue"]
        if name not in self.app.queues:
            raise not_found(f"queue {name}")
        return self.app.queues[name]

    def check_payload(self, *, is_wanted: bool) -> None:
        """Refuse payloads to those who may not see them."""
        if is_wanted and not self.caller.may(Permission.PAYLOAD):
            words = f"payloads need the permission payload, which {self.caller.name} lacks"
            raise Refusal(403, "forbidden", words)

    def page(self, found: Iterable[T], key: Callable[[T], str], what: str) -> Rows:
        """The page that is asked for, of a list that is short enough to be read as a whole."""
        ordered = sorted(found, key=key)
        about = (what, *sorted(self.where.items()))
        after = ""
        if self.given.cursor is not None:
            after = read_cursor(self.given.cursor, about, f"the list of {what}").id
        left = [one for one in ordered if not after or key(one) > after]
        some = left[: self.given.limit]
        is_more = len(left) > len(some)
        return Rows(some, write_cursor(about, "", key(some[-1])) if is_more else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One declared reading."""

    name: str
    """As the description has it: `queues.list`."""
    path: str
    """Below /api."""
    text: str
    """What it tells, in one sentence."""
    answers: Any
    """The type of the answer, or Many or Some of a type."""
    read: Callable[[Wanted], Awaitable[Any]]
    arguments: type[msgspec.Struct] = Anything
    needs: Permission = Permission.VIEW
    is_for_tenant: bool = False
    method: str = "GET"
    media_type: str = "application/json"
    other_media_types: tuple[str, ...] = ()
    """What it may answer instead, if its parameters ask for that."""

    async def answer(self, visit: Visit) -> Response:
        """A call of the API; one that knows the answer already is told so."""
        found = await self.found(visit)
        if isinstance(found, Response):
            return found
        body = encoded(found)
        tag = tag_of(body)
        headers = {"ETag": tag}
        if is_among(tag, visit.request.headers.get("if-none-match")):
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers, media_type=self.media_type)

    async def found(self, visit: Visit) -> Any:
        """What it tells."""
        return await self.read(Wanted(visit, read_query(visit, self.arguments)))


def read_query(visit: Visit, kind: type[G]) -> G:
    """The parameters of an address, checked; one that is there several times is a list."""
    params = visit.request.query_params
    given: dict[str, Any] = {}
    for name in params:
        values = params.getlist(name)
        given[name] = values if name in _lists(kind) else values[0]
        if len(values) > 1 and name not in _lists(kind):
            raise Refusal(422, "invalid", f"{name} must be given once")
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Refusal(422, "invalid", str(error)) from None


def _lists(kind: type[msgspec.Struct]) -> frozenset[str]:
    fields = msgspec.structs.fields(kind)
    return frozenset(one.name for one in fields if get_origin(one.type) is list)


def plain(found: Any) -> Any:
    """The answer as it is encoded."""
    if isinstance(found, Rows):
        return {"items": [plain(one) for one in found.items], "cursor": found.cursor}
    if isinstance(found, View):
        return found.to_dict()
    return found


def encoded(found: Any) -> bytes:
    """The body of an answer."""
    return msgspec.json.encode(plain(found), enc_hook=str)


def tag_of(body: bytes) -> str:
    """The ETag of a body."""
    return f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'


def is_among(tag: str, given: str | None) -> bool:
    """Whether a header If-Match or If-None-Match has this ETag."""
    names = [one.strip().removeprefix("W/") for one in (given or "").split(",")]
    return tag in names or "*" in names
