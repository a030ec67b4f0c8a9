"""Why a job of a flow, or the callback of a group, is not in its queue yet.

Such a job has an id that names its flow or group, and is known there until it has been sent. Each
level of nodes is one read, and no more than a few hundred nodes are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from faena.engine.calls.flows import FlowCalls
from faena.inspection.instant import number
from faena.inspection.reason import Detail, Reason
from faena.values.names import is_name

_ID: Final = re.compile(
    r"(?P<home>[^/:]+)\.(?P<which>[^./:]{1,40})\.(?P<name>\d{1,9}|[a-z]+)(?:-\d+)?"
)
_CALLBACKS: Final = frozenset({"complete", "success"})
_LEVELS: Final = 20
_NODES: Final = 200
"""Nodes that are looked at in all."""
_SHOWN: Final = 5
"""Nodes that are named."""


class Node(NamedTuple):
    """A node of a flow, as far as it matters here."""

    name: str
    queue: str
    job: str
    state: str
    parents: Sequence[int]
    waits: int
    """How many of them have not ended."""

    @property
    def has_ended(self) -> bool:
        """Whether its children are told."""
        return self.state not in {"waiting", "sent"}

    def __str__(self) -> str:
        return f"{self.name} ({self.state})"


class Position(NamedTuple):
    """Why a job is not there, and the jobs that it waits for: queue and id."""

    reason: Reason
    awaited: Sequence[tuple[str, str]] = ()


async def position_of(calls: FlowCalls, queue: str, job_id: str) -> Position | None:
    """The position of a job in its flow or group; None if no such one knows it."""
    found = _ID.fullmatch(job_id)
    if found is None or not is_name(found["home"]):
        return None
    if found["name"] in _CALLBACKS:
        return await _of_callback(calls, found["home"], found["which"], found["name"], job_id)
    if found["name"].isdigit():
        return await _of_node(
            calls, (found["home"], found["which"]), int(found["name"]), (queue, job_id)
        )
    return None


# -- flows -----------------------------------------------------------------------------------------


async def _of_node(
    calls: FlowCalls, flow: tuple[str, str], at: int, job: tuple[str, str]
) -> Position | None:
    (state,) = await calls.flow_fields(*flow, ["state"])
    nodes = await _read(calls, flow, [at]) if state else {}
    node = nodes.get(at)
    if state is None or node is None or (node.queue, node.job) != job:
        return None
    told = f"node {node.name} of flow {'/'.join(flow)}"
    details: dict[str, Detail] = {"flow": "/".join(flow), "node": node.name, "home": flow[0]}
    if state in {b"building", b"reopened"}:
        words = f"it is {told}, which is being written"
        return Position(Reason(code="flow_building", words=words, details=details))
    if node.state == "waiting":
        return await _of_waiting(calls, flow, node, told, details)
    return Position(await _of_sent(calls, flow, (at, node), told, details))


async def _of_waiting(
    calls: FlowCalls, flow: tuple[str, str], node: Node, told: str, details: dict[str, Detail]
) -> Position:
    """The parents that have not ended, and the nodes that keep those."""
    known = await _read(calls, flow, [abs(one) for one in node.parents])
    parents = [one for one in known.values() if not one.has_ended]
    first = await _at_work(calls, flow, parents)
    words = f"it is {told}, which waits for {node.waits} of {number(len(node.parents), 'node')}"
    words += f": {_named(parents, node.waits)}" if parents else ""
    behind = [one for one in first if one not in parents]
    if behind:
        words += f"; those wait for {_named(behind, len(behind))}"
    details |= {
        "waits_for": ", ".join(one.name for one in parents[:_SHOWN]),
        "left": node.waits,
        "first": f"job {first[0].job} in queue {first[0].queue}" if first else "its last parent",
    }
    reason = Reason(code="flow", words=words, details=details)
    return Position(reason, [(one.queue, one.job) for one in first])


async def _at_work(
    calls: FlowCalls, flow: tuple[str, str], nodes: Sequence[Node]
) -> Sequence[Node]:
    """The nodes whose jobs are out, among some and all that those wait for."""
    found, seen = dict[str, Node](), set[int]()
    for _ in range(_LEVELS):
        found |= {one.job: one for one in nodes if one.state == "sent"}
        above = {abs(up) for one in nodes if one.state == "waiting" for up in one.parents} - seen
        if not above or len(seen) >= _NODES:
            break
        chosen = sorted(above)[: _NODES - len(seen)]
        seen |= set(chosen)
        nodes = [one for one in (await _read(calls, flow, chosen)).values() if not one.has_ended]
    return list(found.values())


async def _of_sent(
    calls: FlowCalls,
    flow: tuple[str, str],
    numbered: tuple[int, Node],
    told: str,
    details: dict[str, Detail],
) -> Reason:
    """It is on its way, or has ended."""
    at, node = numbered
    if node.state == "skipped":
        words = f"it is {told}, which was skipped because a node before it failed"
        return Reason(code="skipped", words=words, details=details)
    pending = f"f:{flow[1]}:{at}:{node.job}"
    if node.state == "sent" and await calls.is_pending(flow[0], pending):
        words = f"it is {told}, which has sent it; it is still to be relayed"
        return Reason(code="pending_send", words=words, details=details)
    is_out = "was sent, and is not in its queue any more" if node.state == "sent" else None
    words = f"it is {told}, and {is_out or f'was {node.state}; its queue has removed it'}"
    return Reason(code="removed", words=words, details=details)


async def _read(calls: FlowCalls, flow: tuple[str, str], numbers: Sequence[int]) -> dict[int, Node]:
    """Nodes by number; those that cannot be read are left out."""
    chosen = list(dict.fromkeys(numbers))[:_NODES]
    names = [f"{part}:{at}" for at in chosen for part in "vsp"]
    found = await calls.flow_fields(*flow, names) if names else []
    nodes: dict[int, Node] = {}
    for i, at in enumerate(chosen):
        node = _node(*found[3 * i : 3 * i + 3])
        if node is not None:
            nodes[at] = node
    return nodes


def _node(seen: bytes | None, state: bytes | None, parents: bytes | None) -> Node | None:
    try:
        queue, job, name, _ = msgspec.msgpack.decode(seen or b"", type=tuple[str, str, str, str])
        ups = msgspec.msgpack.decode(parents or b"\x90", type=list[int])
        standing, waits, _ = (state or b"").decode().split(" ")
        return Node(name, queue, job, standing, ups, int(waits))
    except (msgspec.MsgspecError, ValueError):
        return None


def _named(nodes: Sequence[Node], count: int) -> str:
    more = count - len(nodes[:_SHOWN])
    return ", ".join(map(str, nodes[:_SHOWN])) + (f" and {more} more" if more > 0 else "")


# -- groups ----------------------------------------------------------------------------------------


async def _of_callback(
    calls: FlowCalls, home: str, group: str, name: str, job_id: str
) -> Position | None:
    fields = await calls.group(home, group)
    if f"on:{name}" not in fields:
        return None
    counts = {one: _count(fields.get(one)) for one in ("completed", "dead", "cancelled")}
    ended, total = sum(counts.values()), fields.get("total")
    told = f"it is the callback `{name}` of group {home}/{group}"
    details: dict[str, Detail] = {
        "group": f"{home}/{group}",
        "ended": ended,
        "home": home,
        **counts,
    }
    state = fields.get(f"s:{name}", b"").decode(errors="replace")
    if state:
        pending = f"g:{group}:{name}:{job_id}"
        is_out = state == "sent" and await calls.is_pending(home, pending)
        words = "which has sent it; it is still to be relayed"
        words = words if is_out else f"and was {state}; its queue does not have it any more"
        code = "pending_send" if is_out else "removed"
        return Position(Reason(code=code, words=f"{told}, {words}", details=details))
    if total is None:
        words = f"{told}, which is not sealed: {number(ended, 'member')} of it ended so far"
        return Position(Reason(code="group_open", words=words, details=details))
    details["total"] = _count(total)
    if ended >= _count(total):
        failed = counts["dead"] + counts["cancelled"]
        words = f"{told}, of which {number(failed, 'member')} did not complete"
        return Position(Reason(code="group_failed", words=words, details=details))
    words = f"{told}, which waits for {_count(total) - ended} of {number(_count(total), 'member')}"
    return Position(Reason(code="group", words=words, details=details))


def _count(text: bytes | None) -> int:
    try:
        return int(text or 0)
    except ValueError:
        return 0
