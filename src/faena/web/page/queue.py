"""One queue: why it does or does not move, how its jobs do, and what may be done."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from faena.queue import Queue
from faena.states import State
from faena.web.answer import Refusal, not_found
from faena.web.figure import Figures
from faena.web.page.bulk import WORDING
from faena.web.page.chart import WINDOWS, charts, window_of
from faena.web.page.search import fitting, row_of
from faena.web.route import Visit
from faena.web.site import Site
from faena.web.template import spoken
from faena.web.words import Speaker

_PER_PAGE: Final = 50
_TENANTS: Final = 8


async def queues(visit: Visit) -> Response:
    """All queues by name."""
    snapshot = await visit.app.snapshot(max_age="2s", tenants=False)
    found = sorted(snapshot.queues, key=lambda one: one.queue)
    return visit.site.templates.page(visit, "queues.html", queues=found, states=list(State))


async def queue(visit: Visit) -> Response:
    """One of them."""
    chosen = queue_of(visit)
    window = window_of(visit.request.query_params.get("window"))
    write = Figures(Speaker(spoken(visit)))
    has_lanes = chosen.options.is_fair
    overview, shards, drawn, tenants = await asyncio.gather(
        chosen.overview(),
        chosen.shards(),
        charts(chosen, window, write),
        chosen.tenants(limit=_TENANTS) if has_lanes else _none(),
    )
    return visit.site.templates.page(
        visit,
        "queue.html",
        queue=chosen,
        overview=overview,
        shards=shards,
        charts=drawn,
        tenants=tenants,
        window=window,
        windows=WINDOWS,
        states=list(State),
        done=visit.request.query_params.get("done"),
    )


async def jobs(visit: Visit) -> Response:
    """Its jobs in one state, page by page."""
    chosen, query = queue_of(visit), visit.request.query_params
    state = query.get("state", State.READY.value)
    if state not in {one.value for one in State}:
        raise Refusal(422, "invalid", f"state must be one of {', '.join(State)}")
    page = await chosen.jobs(
        state, limit=_PER_PAGE, cursor=query.get("cursor"), is_newest_first="newest" in query
    )
    return visit.site.templates.page(
        visit,
        "jobs.html",
        queue=chosen,
        state=state,
        page=page,
        rows=[row_of(one) for one in page.jobs],
        states=list(State),
        is_newest_first="newest" in query,
        text=f"queue:{chosen.name} state:{state}",
        actions=fitting(visit, page.jobs),
        wording=WORDING,
    )


def queue_of(visit: Visit) -> Queue:
    """The queue of the path."""
    name = visit.request.path_params["queue"]
    if name not in visit.app.queues:
        raise not_found(f"queue {name}")
    return visit.app.queues[name]


async def _none() -> list[Any]:
    return []


async def _figures(site: Site, name: str, write: Figures) -> Mapping[str, str]:
    counts = (await site.app.queues[name].overview()).counts
    return {f"state.{state}": write.number(counts.get(state, 0)) for state in State}


def channel(site: Site, say: Speaker, query: Mapping[str, Any]) -> tuple[Any, Any]:
    """What a tab that shows this page listens to."""
    name = str(query.get("queue", ""))
    if name not in site.app.queues:
        raise not_found(f"queue {name}")
    return ("queue", name, say.language), lambda: _figures(site, name, Figures(say))
