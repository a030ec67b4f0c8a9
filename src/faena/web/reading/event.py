"""Events as they happen, as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Annotated, Final

import msgspec
from starlette.responses import Response, StreamingResponse

from faena.telemetry.events import Event
from faena.web.answer import Refusal, not_found
from faena.web.reading.reading import Reading, Wanted

_ALIVE_S: Final = 15.0
"""After this long without an event a comment is sent, so that a dead connection is noticed."""
_LONGEST_S: Final = 900.0
"""After this a reader has to come again: by then it may be let in no longer."""
_HEADERS: Final = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}


class Which(msgspec.Struct, forbid_unknown_fields=True):
    """Which events are meant."""

    queue: list[str] = []
    """Only of these; none: of all queues and upstreams."""
    kind: list[str] = []
    """Only of these kinds, such as dead; gaps are always told."""
    since: str = "now"
    """now, start (the oldest that is kept), an instant with a time zone, or an event's cursor."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    """The stream ends after this many."""


async def _events(wanted: Wanted) -> Response:
    given = wanted.given
    for name in given.queue:
        if name not in wanted.app.queues:
            raise not_found(f"queue {name}")
    last = wanted.visit.request.headers.get("last-event-id")
    stream = wanted.app.events(
        given.queue or None,
        since=_instant(last or given.since),
        kinds=given.kind or None,
        details=True,
    )
    if not wanted.visit.site.callers.begin_stream(wanted.caller.name):
        words = "too many streams are open for this caller: close one"
        raise Refusal(429, "too_many", words, retry_after=30)
    parts = _parts(wanted, stream)
    return StreamingResponse(parts, headers=_HEADERS, media_type="text/event-stream")


def _instant(text: str) -> str | datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text


async def _parts(wanted: Wanted, stream: AsyncGenerator[Event]) -> AsyncGenerator[bytes]:
    loop = asyncio.get_running_loop()
    end, left = loop.time() + _LONGEST_S, wanted.given.limit
    coming = asyncio.ensure_future(anext(stream))
    try:
        yield b"retry: 2000\n\n"
        while (now := loop.time()) < end:
            await asyncio.wait({coming}, timeout=min(_ALIVE_S, end - now))
            if not coming.done():
                yield b": alive\n\n"
                continue
            try:
                event = coming.result()
            except StopAsyncIteration:
                return
            yield _part(event)
            left = None if left is None else left - 1
            if left == 0:
                return
            coming = asyncio.ensure_future(anext(stream))
    finally:
        coming.cancel()
        await asyncio.gather(coming, return_exceptions=True)
        await stream.aclose()
        wanted.visit.site.callers.end_stream(wanted.caller.name)


def _part(event: Event) -> bytes:
    told = event.to_dict()
    cursor = told.pop("cursor")
    data = msgspec.json.encode(told).decode()
    return f"id: {cursor}\nevent: {event.name}\ndata: {data}\n\n".encode()


READINGS: Final = (
    Reading(
        name="events",
        path="/events",
        text="Events as they happen; Last-Event-ID continues after the last one that was read.",
        answers=str,
        read=_events,
        arguments=Which,
        media_type="text/event-stream",
    ),
)
