"""Searches as the dashboard allows them: what a caller may look for, and where one has come to."""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
import time
from typing import Final, TypeVar

import msgspec

from faena.engine.calls.access import AccessCalls
from faena.inspection.job_query import JobQuery
from faena.states import State
from faena.web.access.caller import Caller
from faena.web.access.role import Permission
from faena.web.answer import Refusal
from faena.web.payload import is_secret
from faena.web.route import Visit

P = TypeVar("P", bound=msgspec.Struct)

_KEPT_MS: Final = 15 * 60_000
_TOKEN: Final = 24
_LONGEST: Final = 2_000


def query_of(caller: Caller, text: str) -> JobQuery:
    """A query as its sender may ask it: of payloads with that permission, of their own tenant."""
    query = JobQuery.parse(text.strip(), time.time_ns() // 1_000)
    if query.payload_fields and not caller.may(Permission.PAYLOAD):
        raise Refusal(403, "forbidden", "a search of payloads needs the permission to see them")
    for field in query.payload_fields:
        if is_secret(field):
            raise Refusal(422, "invalid", f"the field {field} is veiled: it cannot be searched")
    return msgspec.structs.replace(query, tenant=caller.tenant)


async def total_of(visit: Visit, query: JobQuery, among: frozenset[State]) -> int:
    """About how many jobs of some states a query is about."""
    snapshot = await visit.app.snapshot(max_age="2s", tenants=False)
    states = query.states(among)
    return sum(
        one.counts.get(state.value, 0)
        for one in snapshot.queues
        if query.asks_for(one.queue)
        for state in states
    )


class Cursors:
    """Places of a search as the address has them.

    What a place says of others' jobs must not reach one who sees a single tenant: theirs is kept on
    the broker for a while, and the address has a word that stands for it.
    """

    def __init__(self, calls: AccessCalls, caller: Caller, query: JobQuery) -> None:
        self._calls, self._is_hidden = calls, caller.tenant is not None
        about = f"{query}\n{caller.tenant}\n{caller.name if self._is_hidden else ''}"
        self._about = hashlib.blake2b(about.encode(), digest_size=6).digest()

    @classmethod
    async def of(cls, visit: Visit, query: JobQuery) -> Cursors:
        """For one request."""
        return cls(AccessCalls((await visit.app.runtime()).engine), visit.caller, query)

    async def write(self, place: msgspec.Struct) -> str:
        """The cursor of a place."""
        packed = msgspec.msgpack.encode((self._about, place))
        if not self._is_hidden:
            return base64.urlsafe_b64encode(packed).decode().rstrip("=")
        token = secrets.token_urlsafe(_TOKEN)
        await self._calls.keep_place(token, packed, _KEPT_MS)
        return token

    async def read(self, cursor: str | None, kind: type[P]) -> P:
        """The place of a cursor; the start without one."""
        if not cursor:
            return kind()
        try:
            packed = await self._packed(cursor)
            about, place = msgspec.msgpack.decode(packed, type=tuple[bytes, kind])
        except (binascii.Error, msgspec.MsgspecError, ValueError):
            about, place = b"", kind()
        if about != self._about:
            raise Refusal(422, "invalid", "this search has come too far, or is another: begin anew")
        return place

    async def _packed(self, cursor: str) -> bytes:
        if len(cursor) > _LONGEST or not cursor.isascii() or not cursor.isprintable():
            return b""
        if self._is_hidden:
            return await self._calls.place(cursor) or b""
        padding = "=" * (-len(cursor) % 4)
        return base64.b64decode(cursor + padding, altchars=b"-_", validate=True)
