"""What open pages listen to, and what they ask for where listening fails."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Final

from starlette.responses import Response, StreamingResponse

from faena.web.answer import Refusal, json, not_found
from faena.web.live import TooManyListeners
from faena.web.page import (
    alert,
    bulk,
    cost,
    overview,
    queue,
    tenant,
    tenants,
    upstream,
    worker,
)
from faena.web.route import Visit
from faena.web.site import Site
from faena.web.standing import banner, figures
from faena.web.template import spoken
from faena.web.words import Speaker

Channel = Callable[[Site, Speaker, Mapping[str, Any]], tuple[Any, Any]]
_CHANNELS: Final[Mapping[str, Channel]] = {
    "overview": overview.channel,
    "queue": queue.channel,
    "alerts": alert.channel,
    "costs": cost.channel,
    "workers": worker.channel,
    "upstreams": upstream.channel,
    "upstream": upstream.channel_of_one,
    "tenant": tenant.channel,
    "tenants": tenants.channel,
    "bulk": bulk.channel,
}
_HEADERS: Final = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}


async def live(visit: Visit) -> Response:
    """Changes of a page as server-sent events."""
    key, reading = _chosen(visit)
    listening = visit.site.hub.listen(key, reading)
    try:
        first = await anext(listening)
    except TooManyListeners:
        words = "too many pages are open: this one asks now and then instead"
        raise Refusal(503, "too_many", words, retry_after=30) from None

    async def parts() -> AsyncGenerator[bytes]:
        try:
            yield first
            async for part in listening:
                yield part
        finally:
            await listening.aclose()

    return StreamingResponse(parts(), headers=_HEADERS, media_type="text/event-stream")


async def now(visit: Visit) -> Response:
    """The same figures, once."""
    _, reading = _chosen(visit)
    return json(dict(await reading()))


def _chosen(visit: Visit) -> tuple[Any, Any]:
    name = visit.request.path_params["page"]
    if name not in _CHANNELS:
        raise not_found()
    query, say, own = visit.request.query_params, Speaker(spoken(visit)), visit.caller.tenant
    if own is not None and (name, query.get("tenant")) != ("tenant", own):
        raise not_found()
    key, reading = _CHANNELS[name](visit.site, say, query)
    around = figures if own is None else banner

    async def with_frame() -> Mapping[str, str]:
        """What all pages show, and what this one does."""
        return {**around(await visit.site.standings.now(), say), **await reading()}

    return (key, own is None), with_frame
