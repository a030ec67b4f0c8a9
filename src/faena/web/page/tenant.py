"""One tenant over all queues: why its jobs wait, what is decided for it, what it costs.

Who may see one tenant only starts here, and is shown nothing that tells of others: no shares, and
no other name, count or job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from faena.engine.calls.budget_view import BudgetView
from faena.job import JobView
from faena.options.settings import Settings
from faena.queue import Queue
from faena.states import State
from faena.tenancy.tenants import Tenant, TenantView
from faena.values.names import check_label
from faena.web.answer import Refusal, not_found
from faena.web.figure import Figures
from faena.web.operation.tenant import AS_QUEUE, NO_LIMITS
from faena.web.page.tenants import chips
from faena.web.route import Visit
from faena.web.site import Site
from faena.web.template import spoken
from faena.web.words import Speaker

_PER_PAGE: Final = 50
_SCANNED: Final = 250
_SCANS: Final = 4
"""Pages of a state that one request looks through for jobs of the tenant."""
_DEAD: Final = 5
_AT_ONCE: Final = 16
_TABS: Final = ("", "jobs", "dead")
_STATES: Final = tuple(one for one in State if one is not State.DEAD)


class Place(NamedTuple):
    """The tenant in one queue."""

    queue: str
    view: TenantView
    ready: int | None
    chips: Sequence[tuple[str, str]]
    bounds: Sequence[str]
    """What bounds it here, and what is left of that."""
    fields: Mapping[str, str]
    """Its settings as a form has them."""
    is_movable: bool


async def tenant(visit: Visit) -> Response:
    """The tenant, its jobs or its dead letters, as the address says."""
    name = name_of(visit)
    tab = visit.request.query_params.get("tab", "")
    if tab not in _TABS:
        raise Refusal(422, "invalid", "tab must be jobs or dead, or left out")
    if tab == "jobs":
        return await _jobs(visit, name)
    if tab == "dead":
        return await _dead(visit, name)
    return await _start(visit, name)


def name_of(visit: Visit) -> str:
    """The tenant of the path; who sees one only is told of no other."""
    name = check_label("tenant", visit.request.path_params["tenant"])
    if visit.caller.tenant is not None and visit.caller.tenant != name:
        raise not_found("tenant")
    return name


# -- the tenant itself -----------------------------------------------------------------------------


async def _start(visit: Visit, name: str) -> Response:
    is_own = visit.caller.tenant is not None
    say = Speaker(spoken(visit))
    is_after_change = "done" in visit.request.query_params
    places, budgets, costs, dead, reading, snapshot = await asyncio.gather(
        _places(visit, name, say),
        visit.app.budget_views(tenant=name),
        visit.app.tenant_costs(name),
        visit.app.dead_letters.list(tenant=name, status="pending", limit=_DEAD),
        visit.site.census.read(1, is_after_change=is_after_change and not is_own),
        visit.app.snapshot(max_age="5s", tenants=False),
    )
    standing = reading.tenants.get(name)
    return visit.site.templates.page(
        visit,
        "tenant.html",
        tenant=name,
        tab="",
        places=places,
        held=[one for one in places if one.view.is_held],
        standing=standing,
        share=reading.share(standing) if standing and not is_own else None,
        live=sum(one.view.live for one in places),
        running=sum(one.view.running for one in places),
        ready=sum(one.ready or 0 for one in places),
        budgets=[one for one in budgets if _is_own(one)],
        costs=costs[name],
        dead=dead,
        now=snapshot.at,
        says=_says(places, say, Figures(say), snapshot.at),
        queues=[one.name for one in visit.app.queues.values() if one.options.is_fair],
    )


def _is_own(budget: BudgetView) -> bool:
    return budget.is_each_tenants


async def _places(visit: Visit, name: str, say: Speaker) -> list[Place]:
    """The queues where it has jobs or something is decided, where it waits most first."""
    room = asyncio.Semaphore(_AT_ONCE)
    queues = [one for one in visit.app.queues.values() if one.options.is_fair]

    async def look(queue: Queue) -> Place | None:
        async with room:
            one = queue.tenant(name)
            view = await one.view()
            if not view.live and view.by is None and not view.is_dedicated:
                return None
            return await _place(queue, one, view, say)

    found = await asyncio.gather(*map(look, queues))
    places = [one for one in found if one is not None]
    return sorted(places, key=lambda one: (-one.view.live, one.queue))


async def _place(queue: Queue, one: Tenant, view: TenantView, say: Speaker) -> Place:
    settings = await queue.settings()
    return Place(
        queue=queue.name,
        view=view,
        ready=await one.ready_count(),
        chips=chips([(queue.name, view)], say),
        bounds=_bounds(view, settings, say),
        fields=_fields(view),
        is_movable=bool(queue.options.is_fair) and str(queue.options.order) != "queue",
    )


def _bounds(view: TenantView, settings: Settings, say: Speaker) -> list[str]:
    """What bounds it, whether by a decision for it or by the queue, and what is left of it."""
    found, shut = list[str](), {gate.name: gate for gate in view.gates}
    most = settings.tenant_max_running if view.max_running is None else view.max_running
    if most is not None:
        left = max(0, most - view.running)
        found.append(say("{left} of {most} running are free", left=left, most=most))
    limits = settings.tenant_limits if view.limits is None else view.limits
    used_up = shut.get("tenant_limit")
    for one in limits:
        is_used_up = used_up is not None and used_up.detail == str(one)
        words = "{limit}: used up" if is_used_up else "{limit}: has room"
        found.append(say(words, limit=one))
    if view.size is not None:
        left = max(0, view.size - view.live)
        found.append(say("room for {left} more jobs, of {most}", left=left, most=view.size))
    return found


def _fields(view: TenantView) -> dict[str, str]:
    limits = view.limits
    numbers = {"max_running": view.max_running, "weight": view.weight, "size": view.size}
    return {
        "limits": AS_QUEUE if limits is None else ", ".join(map(str, limits)) or NO_LIMITS,
        **{name: AS_QUEUE if one is None else f"{one:g}" for name, one in numbers.items()},
    }


def _says(places: Sequence[Place], say: Speaker, write: Figures, now: int) -> str:
    """What is wrong with it, since when, and what happens next by itself."""
    held = [one for one in places if one.view.is_held]
    if held:
        names = ", ".join(one.queue for one in held)
        ends = [one.view.held_until or 0 for one in held]
        if all(ends):
            words = "Held in {queues}: the last hold ends {time}."
            return say(words, queues=names, time=write.ago(max(ends), now))
        return say("Held in {queues} until somebody releases it.", queues=names)
    shut = [one for one in places if one.view.gates]
    if shut:
        words = "; ".join(
            f"{one.queue}: {', '.join(gate.words(now) for gate in one.view.gates)}" for one in shut
        )
        return say("It waits for limits of its own. {words}", words=words)
    if any(one.view.live > one.view.running for one in places):
        return say("Nothing of its own keeps its jobs: they wait for their turn or their time.")
    return say("None of its jobs waits.")


# -- its jobs --------------------------------------------------------------------------------------


async def _jobs(visit: Visit, name: str) -> Response:
    query = visit.request.query_params
    state = query.get("state") or State.READY.value
    if state not in {one.value for one in _STATES}:
        raise Refusal(422, "invalid", f"state must be one of {', '.join(_STATES)}")
    queues = [*visit.app.queues]
    chosen = query.get("queue") or await _busiest(visit, name)
    if chosen is not None and chosen not in visit.app.queues:
        raise not_found(f"queue {chosen}")
    jobs, cursor, looked = list[JobView](), None, 0
    if chosen is not None:
        queue = visit.app.queues[chosen]
        jobs, cursor, looked = await _find(queue, name, State(state), visit.site.veil.meant(visit))
    return visit.site.templates.page(
        visit,
        "tenant-jobs.html",
        tenant=name,
        tab="jobs",
        jobs=jobs,
        cursor=visit.site.veil.shown(visit, cursor),
        looked=looked if visit.caller.tenant is None else 0,
        state=state,
        states=_STATES,
        queues=queues,
        queue=chosen,
    )


async def _busiest(visit: Visit, name: str) -> str | None:
    """The queue where it has most jobs; else the first one of all."""
    reading = await visit.site.census.read(1)
    standing = reading.tenants.get(name)
    if standing and standing.queues:
        return standing.queues[0]
    return next(iter(visit.app.queues), None)


async def _find(
    queue: Queue, name: str, state: State, cursor: str | None
) -> tuple[list[JobView], str | None, int]:
    """Some of its jobs, where the search goes on, and how many jobs were looked at.

    Ready ones stand in a line of their own; others are picked out of all of that state.
    """
    if state is State.READY and queue.options.is_fair:
        page = await queue.tenant(name).ready(limit=_PER_PAGE, cursor=cursor)
        return [*page.jobs], page.cursor, 0
    found, looked = list[JobView](), 0
    is_newest_first = state in {State.COMPLETED, State.CANCELLED}
    for _ in range(_SCANS):
        page = await queue.jobs(
            state, limit=_SCANNED, cursor=cursor, is_newest_first=is_newest_first
        )
        looked += len(page.jobs)
        found += [one for one in page.jobs if one.tenant == name]
        cursor = page.cursor
        if cursor is None or len(found) >= _PER_PAGE:
            break
    return found, cursor, looked


# -- its dead letters ------------------------------------------------------------------------------


async def _dead(visit: Visit, name: str) -> Response:
    query = visit.request.query_params
    status: Any = query.get("status") or "pending"
    wanted = {} if status == "all" else {"status": status}
    page, snapshot = await asyncio.gather(
        visit.app.dead_letters.list(
            tenant=name, limit=_PER_PAGE, cursor=visit.site.veil.meant(visit), **wanted
        ),
        visit.app.snapshot(max_age="5s", tenants=False),
    )
    return visit.site.templates.page(
        visit,
        "tenant-dead.html",
        tenant=name,
        tab="dead",
        page=page,
        cursor=visit.site.veil.shown(visit, page.cursor),
        chosen=status,
        now=snapshot.at,
    )


# -- an open page ----------------------------------------------------------------------------------


async def _figures(site: Site, name: str, write: Figures) -> Mapping[str, str]:
    one = (await site.census.read(1)).tenants.get(name)
    live, running = (one.live, one.running) if one else (0, 0)
    return {
        "waiting": write.number(max(0, live - running)),
        "running": write.number(running),
        "wait": write.duration(one.wait_us if one else None),
        "throttled": write.duration(one.throttled_us if one else 0),
    }


def channel(site: Site, say: Speaker, query: Mapping[str, Any]) -> tuple[Any, Any]:
    """What a tab that shows this page listens to."""
    name = check_label("tenant", query.get("tenant", ""))
    return ("tenant", name, say.language), lambda: _figures(site, name, Figures(say))
