"""The dead-letter desk: what died of what, and what is decided about it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from faena.deadletter.redrive_view import RedriveView
from faena.web.route import Visit

_PER_PAGE: Final = 50
_GROUPS: Final = 12
_FILTERS: Final = (
    *("status", "tenant", "task", "error", "fingerprint"),
    *("older_than", "newer_than"),
)
_UNDER_WAY: Final = frozenset({"canary", "running"})
_LAST: Final = 3


async def dead(visit: Visit) -> Response:
    """Dead jobs, grouped by error and as a list that is filtered by the address."""
    query, desk = visit.request.query_params, visit.app.dead_letters
    wanted = {name: query[name] for name in _FILTERS if query.get(name)}
    if "status" not in query:
        wanted["status"] = "pending"
    elif query["status"] == "all":
        wanted.pop("status", None)
    queue = query.get("queue") or None
    page, groups, stats, redrives = await asyncio.gather(
        desk.list(queues=queue, limit=_PER_PAGE, cursor=query.get("cursor"), **_filter(wanted)),
        desk.groups(queues=queue, limit=_GROUPS),
        desk.stats(queues=queue),
        _redrives(visit, queue),
    )
    now = await _now(visit)
    return visit.site.templates.page(
        visit,
        "dead.html",
        page=page,
        groups=groups,
        stats=stats,
        redrives=redrives,
        queue=queue,
        wanted=wanted,
        now=now,
        query=dict(query),
        done=query.get("done"),
    )


def _filter(wanted: Mapping[str, str]) -> Any:
    """Checked by the desk, which names what is wrong."""
    return dict(wanted)


async def _redrives(visit: Visit, queue: str | None) -> list[RedriveView]:
    """Those under way, and the last ones of a queue that is looked at."""
    all_of_them = await visit.app.dead_letters.all_redrives(queues=queue)
    under_way = [one for one in all_of_them if one.state in _UNDER_WAY]
    over = [one for one in all_of_them if one.state not in _UNDER_WAY]
    over.sort(key=lambda one: -one.begun_at)
    return [*under_way, *over[:_LAST]]


async def _now(visit: Visit) -> int:
    return (await visit.app.snapshot(max_age="5s", tenants=False)).at
