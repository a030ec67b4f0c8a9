"""Flows, groups and schedules."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from faena.engine.calls.flows import FlowCalls
from faena.errors import JobNotFound
from faena.flows.flow import FlowView
from faena.flows.group import GroupView
from faena.scheduling.view import ScheduleView
from faena.web.payload import veiled
from faena.web.reading.reading import USUAL, Limited, Many, Paged, Reading, Rows, Some, Wanted

_MOST: Final = 1_000


class Which(msgspec.Struct, forbid_unknown_fields=True):
    """Flows or groups of a queue."""

    ended: bool = False
    """Those that have ended, instead of those under way."""
    limit: Limited = USUAL
    cursor: str | None = None


class Nodes(msgspec.Struct, forbid_unknown_fields=True):
    """How much of a flow is meant."""

    results: bool = False
    """Results of completed nodes too."""


class Coming(msgspec.Struct, forbid_unknown_fields=True):
    """How much of a schedule is meant."""

    next: Limited = 5
    """How many of the next instants."""
    payload: bool = False
    """The payload of its jobs too, with fields that sound secret veiled."""


async def _ids(wanted: Wanted, *, is_flow: bool) -> Rows:
    calls = FlowCalls((await wanted.app.runtime()).engine)
    read = calls.flows if is_flow else calls.groups
    ids = await read(wanted.queue.name, is_live=not wanted.given.ended, limit=_MOST)
    return wanted.page(ids, lambda one: one, "flows" if is_flow else "groups")


async def _flows(wanted: Wanted) -> Rows:
    ids = await _ids(wanted, is_flow=True)
    views: list[Any] = []
    for one in ids.items:
        try:
            flow = wanted.app.running_flow(f"{wanted.queue.name}/{one}")
            views.append((await flow.view(has_nodes=False)).to_dict())
        except JobNotFound:  # removed meanwhile
            continue
    return Rows(views, ids.cursor)


async def _flow(wanted: Wanted) -> dict[str, Any]:
    wanted.check_payload(is_wanted=wanted.given.results)
    queue = wanted.queue.name
    view = await wanted.app.running_flow(f"{queue}/{wanted.where['flow']}").view()
    shown = view.to_dict()
    for node in shown["nodes"]:
        if node["state"] == "completed":
            node["outcome"] = veiled(node["outcome"]) if wanted.given.results else None
    return shown


async def _groups(wanted: Wanted) -> Rows:
    ids = await _ids(wanted, is_flow=False)
    views: list[GroupView] = []
    for one in ids.items:
        try:
            views.append(await wanted.app.group(id=f"{wanted.queue.name}/{one}").view())
        except JobNotFound:
            continue
    return Rows(views, ids.cursor)


async def _group(wanted: Wanted) -> GroupView:
    return await wanted.app.group(id=f"{wanted.queue.name}/{wanted.where['group']}").view()


async def _schedules(wanted: Wanted) -> Rows:
    return wanted.page(await wanted.app.schedules.list(), lambda one: one.name, "schedules")


async def _schedule(wanted: Wanted) -> dict[str, Any]:
    wanted.check_payload(is_wanted=wanted.given.payload)
    name, schedules = wanted.where["schedule"], wanted.app.schedules
    coming = await schedules.next(name, wanted.given.next)
    view = await schedules.get(name)
    shown = view.to_dict()
    shown["coming"] = [round(one.timestamp() * 1e6) for one in coming]
    if wanted.given.payload:
        shown["payload"] = veiled(msgspec.json.decode(view.terms["payload"]))
    return shown


READINGS: Final = (
    Reading(
        name="flows.list",
        path="/queues/{queue}/flows",
        text="The 1,000 latest flows of a queue, by id, without their nodes.",
        answers=Many(FlowView),
        read=_flows,
        arguments=Which,
    ),
    Reading(
        name="flows.show",
        path="/queues/{queue}/flows/{flow}",
        text="One flow, and every node with its job.",
        answers=FlowView,
        read=_flow,
        arguments=Nodes,
    ),
    Reading(
        name="groups.list",
        path="/queues/{queue}/groups",
        text="The 1,000 latest groups of a queue, by id.",
        answers=Many(GroupView),
        read=_groups,
        arguments=Which,
    ),
    Reading(
        name="groups.show",
        path="/queues/{queue}/groups/{group}",
        text="One group: its members by how they ended.",
        answers=GroupView,
        read=_group,
    ),
    Reading(
        name="schedules.list",
        path="/schedules",
        text="All schedules, by name, also those that no program declares any more.",
        answers=Many(ScheduleView),
        read=_schedules,
        arguments=Paged,
    ),
    Reading(
        name="schedules.show",
        path="/schedules/{schedule}",
        text="One schedule and its next instants.",
        answers=Some(ScheduleView, more=("coming", "payload")),
        read=_schedule,
        arguments=Coming,
    ),
)
