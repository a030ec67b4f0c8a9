"""Schedules: when each fires, in plain words, what it has fired, and what may be changed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from starlette.responses import Response

from faena.errors import ConfigError
from faena.job import JobView
from faena.scheduling.options import OVERLAPS
from faena.scheduling.view import PastInstant, ScheduleView
from faena.values.names import is_name
from faena.web.access.role import Permission
from faena.web.answer import not_found
from faena.web.operation.schedule import written
from faena.web.page.job import pretty
from faena.web.page.recurrence import recurrence
from faena.web.route import Visit
from faena.web.template import spoken
from faena.web.words import Speaker

_COMING: Final = 5
_PAST: Final = 10
_MOST: Final = 200
_RANKS: Final = {"paused": 0, "not started": 1, "active": 2, "over": 3}


class Row(NamedTuple):
    """One schedule as the table shows it."""

    view: ScheduleView
    says: str
    local: str | None
    """Its next instant on the clock of its zone."""


class Firing(NamedTuple):
    """An instant that has passed, with its job if there still is one."""

    past: PastInstant
    job: JobView | None
    local: str | None


async def schedules(visit: Visit) -> Response:
    """All schedules, the paused ones first, then by when they fire next."""
    text = (visit.request.query_params.get("q") or "").strip().casefold()
    every, snapshot = await asyncio.gather(
        visit.app.schedules.list(), visit.app.snapshot(max_age="2s", tenants=False)
    )
    say = Speaker(spoken(visit))
    found = [one for one in every if text in one.name or text in one.queue]
    found.sort(key=lambda one: (_RANKS.get(one.state, 9), one.next_at or 0, one.name))
    rows = [
        Row(one, recurrence(one.terms, say), _local(one.next_at, one.terms["tz"]))
        for one in found[:_MOST]
    ]
    coming = [one.next_at for one in every if one.next_at is not None]
    return visit.site.templates.page(
        visit,
        "schedules.html",
        rows=rows,
        number=len(found),
        text=text,
        paused=sum(one.state == "paused" for one in every),
        all=len(every),
        soonest=min(coming, default=None),
        missed=snapshot.missed_schedules,
        now=snapshot.at,
        tasks=_tasks(visit),
    )


async def schedule(visit: Visit) -> Response:
    """One of them."""
    name = visit.request.path_params["schedule"]
    if not is_name(name):
        raise not_found("schedule")
    desk = visit.app.schedules
    try:
        view = await desk.get(name)
    except ConfigError:
        raise not_found(f"schedule {name}") from None
    coming, past, snapshot = await asyncio.gather(
        desk.next(name, _COMING),
        desk.past(name, _PAST),
        visit.app.snapshot(max_age="2s", tenants=False),
    )
    zone, say = view.terms["tz"], Speaker(spoken(visit))
    sees = visit.caller.may(Permission.PAYLOAD)
    return visit.site.templates.page(
        visit,
        "schedule.html",
        view=view,
        says=recurrence(view.terms, say),
        coming=[(_us(one), _local(_us(one), zone)) for one in coming],
        firings=await _firings(visit, view, past),
        now=snapshot.at,
        zone=zone,
        fields=written(view),
        overlaps=OVERLAPS,
        payload=pretty(view.terms["payload"].encode()) if sees else None,
        queue=visit.app.queues[view.queue],
    )


async def _firings(visit: Visit, view: ScheduleView, past: Sequence[PastInstant]) -> list[Firing]:
    queue, zone = visit.app.queues[view.queue], view.terms["tz"]
    jobs = await asyncio.gather(
        *(queue.handle(one.job, tenant=view.terms.get("tenant")).view() for one in past)
    )
    return [Firing(one, job, _local(one.at, zone)) for one, job in zip(past, jobs, strict=True)]


def _tasks(visit: Visit) -> list[str]:
    return [
        f"{queue.name}/{task}"
        for queue in visit.app.queues.values()
        if not queue.is_remote
        for task in queue.tasks
    ]


def _local(us: int | None, zone: str) -> str | None:
    if us is None:
        return None
    return f"{datetime.fromtimestamp(us / 1e6, ZoneInfo(zone)):%Y-%m-%d %H:%M:%S}"


def _us(moment: datetime) -> int:
    return round(moment.timestamp() * 1e6)
