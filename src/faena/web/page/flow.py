"""Flows and groups: which are under way, how far each is, and what holds it up."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
from starlette.responses import Response

from faena.engine.calls.flows import FlowCalls, Made
from faena.errors import ConfigError, JobNotFound
from faena.flows import FlowView, NodeView
from faena.flows.flow import job_of
from faena.flows.group import GroupView
from faena.outcomes import ErrorRecord
from faena.values.cursor import read_cursor, write_cursor
from faena.web.answer import Refusal, not_found
from faena.web.page.graph import graph_of, worst_first
from faena.web.page.queue import queue_of
from faena.web.route import Visit
from faena.web.template import spoken
from faena.web.words import Speaker

_PER_PAGE: Final = 40
_DRAWN: Final = 2_000
"""The most nodes of a flow that are read for its page."""
_LISTED: Final = 100
_KINDS: Final = ("flows", "groups")
_AT_ONCE: Final = 16


class Listed(NamedTuple):
    """A node in the list below the picture."""

    node: NodeView
    error: str


async def flows(visit: Visit) -> Response:
    """Flows or groups of all queues, the newest first."""
    query = visit.request.query_params
    kind, queue = query.get("kind") or "flows", query.get("queue") or None
    if kind not in _KINDS:
        raise Refusal(422, "invalid", "kind must be flows or groups")
    if queue is not None and queue not in visit.app.queues:
        raise not_found(f"queue {queue}")
    is_live = query.get("ended") is None
    about = (kind, queue, is_live)
    cursor = query.get("cursor") or None
    reached = read_cursor(cursor, about, "this list").score if cursor else ""
    calls = FlowCalls((await visit.app.runtime()).engine)
    names = [queue] if queue else [*visit.app.queues]
    found = await _latest(calls, names, kind, is_live=is_live, before=reached)
    page = found[:_PER_PAGE]
    more = write_cursor(about, repr(page[-1][0]), page[-1][1]) if len(found) > _PER_PAGE else None
    snapshot, views = await asyncio.gather(
        visit.app.snapshot(max_age="5s", tenants=False),
        asyncio.gather(*(_view(visit, kind, name) for _, name in page)),
    )
    return visit.site.templates.page(
        visit,
        "flows.html",
        kind=kind,
        queue=queue,
        queues=[*visit.app.queues],
        is_live=is_live,
        views=[one for one in views if one is not None],
        cursor=more,
        now=snapshot.at,
    )


async def _latest(
    calls: FlowCalls, queues: Sequence[str], kind: str, *, is_live: bool, before: str
) -> list[tuple[float, str]]:
    """When and which, of all queues, one more than a page has."""
    room = asyncio.Semaphore(_AT_ONCE)

    async def of(queue: str) -> list[tuple[float, str]]:
        async with room:
            rows = await calls.latest(
                queue,
                kind,
                is_live=is_live,
                limit=_PER_PAGE + 1,
                before=f"({before}" if before else "+inf",
            )
        return [(at, f"{queue}/{name}") for at, name in rows]

    parts = await asyncio.gather(*map(of, queues))
    return sorted((row for part in parts for row in part), key=lambda row: (-row[0], row[1]))


async def _view(visit: Visit, kind: str, name: str) -> FlowView | GroupView | None:
    """One of them; None if it is gone meanwhile."""
    try:
        if kind == "flows":
            return await visit.app.running_flow(name).view(has_nodes=False)
        return await visit.app.group(id=name).view()
    except JobNotFound:
        return None


async def flow(visit: Visit) -> Response:
    """One flow, with its graph."""
    queue = queue_of(visit)
    name = f"{queue.name}/{visit.request.path_params['flow']}"
    try:
        found = visit.app.running_flow(name)
        view = await found.view(has_nodes=False)
    except (ConfigError, JobNotFound):
        raise not_found(f"flow {name}: flows are kept for 7 days after their end") from None
    is_drawn = view.total <= _DRAWN
    if is_drawn:
        view = await found.view()
    snapshot = await visit.app.snapshot(max_age="2s", tenants=False)
    listed = [Listed(node, _error(node)) for node in worst_first(view.nodes)[:_LISTED]]
    return visit.site.templates.page(
        visit,
        "flow.html",
        flow=view,
        queue=queue,
        ident=visit.request.path_params["flow"],
        graph=graph_of(view.nodes) if is_drawn else None,
        listed=listed,
        counts=view.counts,
        says=_says(view, Speaker(spoken(visit))),
        queues=visit.app.queues,
        now=snapshot.at,
    )


def _says(view: FlowView, say: Speaker) -> str:
    """What holds it up, or how it ended."""
    bad = [node for node in view.nodes if node.state in {"dead", "cancelled"}]
    names = ", ".join(node.name for node in bad[:3]) + (" …" if bad[3:] else "")
    if bad:
        skipped = view.counts.get("skipped", 0)
        words = "{names} did not complete, so {n} {n|node was|nodes were} skipped."
        return say(words, names=names, n=skipped)
    out = [node.name for node in view.nodes if node.state == "sent"]
    if out:
        shown = ", ".join(out[:3]) + (" …" if out[3:] else "")
        return say("It waits for {names}.", names=shown)
    if not view.left:
        return say("All of its nodes have ended.")
    return say("{left} of {total} nodes have not ended.", left=view.left, total=view.total)


def _error(node: NodeView) -> str:
    """What a node died of; results are shown on the page of its job."""
    if node.outcome is None or node.state == "completed":
        return ""
    try:
        error = msgspec.json.decode(node.outcome, type=ErrorRecord)
    except msgspec.MsgspecError:
        return ""
    return f"{error.code or error.name}: {error.message}"[:200]


class Callback(NamedTuple):
    """A job that is enqueued when the members of a group have ended."""

    name: str
    state: str
    queue: str
    job: str


def _queue_of(fields: Mapping[str, bytes], name: str) -> str:
    """Where a callback runs; empty if its group was removed meanwhile."""
    packed = fields.get(f"on:{name}")
    return Made.unpack(packed).queue if packed else ""


async def group(visit: Visit) -> Response:
    """One group, with its callbacks."""
    queue = queue_of(visit)
    ident = visit.request.path_params["group"]
    try:
        view = await visit.app.group(id=f"{queue.name}/{ident}").view()
    except (ConfigError, JobNotFound):
        words = f"group {queue.name}/{ident}: groups are kept for 7 days after their end"
        raise not_found(words) from None
    snapshot = await visit.app.snapshot(max_age="2s", tenants=False)
    fields = await FlowCalls((await visit.app.runtime()).engine).group(queue.name, ident)
    calls = [
        Callback(name, state, _queue_of(fields, name), job_of(queue.name, ident, name))
        for name, state in view.callbacks.items()
    ]
    return visit.site.templates.page(
        visit,
        "group.html",
        group=view,
        queue=queue,
        calls=calls,
        now=snapshot.at,
    )
