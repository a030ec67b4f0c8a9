"""A started flow: read its state, wait for it, cancel it, run it again."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from faena.codec import codec_for
from faena.engine.calls.flows import FlowCalls
from faena.engine.requester import on_behalf
from faena.errors import (
    ConfigError,
    FaenaError,
    InvalidTransition,
    JobCancelled,
    JobFailed,
    JobNotFound,
    ResultTimeout,
    arguments,
    as_text,
    nearest,
    shown,
)
from faena.outcomes import ErrorRecord
from faena.producing.handle import Handle
from faena.states import FINISHED
from faena.values.duration import to_s
from faena.values.names import check_label, check_name
from faena.values.view import View

if TYPE_CHECKING:
    from faena.app import Faena

SLICE: Final = 100
"""Nodes written or read in one call."""

_LONGEST_ID: Final = 40
_POLL_S: Final = 0.02
_POLL_MOST_S: Final = 0.5
_FINAL: Final = frozenset({"completed", "failed", "cancelled"})
_MENDABLE: Final = frozenset({"dead", "cancelled"})
_HEAD: Final = ("state", "nodes", "left", "name", "created", "finished")

_pack = msgspec.msgpack.encode
_unpack = msgspec.msgpack.decode


def check_id(flow: str) -> str:
    """Return `flow` if it is a valid id: it becomes part of other ids."""
    if len(check_label("id", flow)) > _LONGEST_ID or set(flow) & set(":/."):
        raise ConfigError(
            f"id of a flow or a group must be at most {_LONGEST_ID} characters without colon, "
            f"slash and dot, got {shown(flow)}",
            field="id",
            value=flow,
        )
    return flow


async def until_over(
    is_over: Callable[[], Awaitable[bool]], what: str, timeout: timedelta | str | None
) -> None:
    """Poll with growing pauses; raises ResultTimeout when it takes too long."""
    with arguments():
        wait_s = None if timeout is None else to_s("timeout", timeout)
    try:
        async with asyncio.timeout(wait_s):
            pause_s = _POLL_S
            while not await is_over():
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _POLL_MOST_S)
    except TimeoutError:
        raise ResultTimeout(f"{what} has not ended after {wait_s:g} s", op="wait") from None


def job_of(queue: str, flow: str, name: int | str, run: int = 1) -> str:
    """The id of a node's or a callback's job, in each run of the flow."""
    job = f"{queue}.{flow}.{name}"
    return job if run == 1 else f"{job}-{run}"


class NodeView(View, frozen=True, kw_only=True):
    """One node of a flow."""

    name: str
    queue: str
    task: str
    job: str
    state: str
    """waiting, sent (its job is in its queue), completed, dead, cancelled or skipped."""
    after: tuple[str, ...]
    outcome: bytes | None
    """As JSON: what a completed node returned, or the error of one that is dead or cancelled."""


class FlowView(View, frozen=True, kw_only=True):
    """The state of a flow. Instants are the server's microseconds."""

    also = ("progress",)

    id: str
    name: str
    state: str
    """building, running, completed, failed or cancelled; reopened while a rerun is prepared."""
    total: int
    left: int
    """Nodes that have not ended."""
    created_at: int | None
    finished_at: int | None
    nodes: tuple[NodeView, ...]

    @property
    def progress(self) -> float:
        """Which part of its nodes have ended, 0 to 1."""
        return 1.0 - self.left / self.total if self.total else 0.0

    @property
    def counts(self) -> dict[str, int]:
        """Nodes by state."""
        return dict(Counter(node.state for node in self.nodes))


@dataclass(slots=True)
class _Head:
    state: str
    total: int
    left: int
    name: str
    created_at: int | None
    finished_at: int | None


class Flow:
    """A handle of a started flow."""

    def __init__(self, app: Faena, flow_id: str) -> None:
        self._app = app
        self.id = flow_id
        queue, slash, flow = as_text(flow_id).partition("/")
        if not slash:
            raise ConfigError(
                f"flow must be given as queue/id, got {shown(flow_id)}", field="flow", value=flow_id
            )
        self._queue, self._flow = check_name("flow's queue", queue), check_id(flow)

    async def state(self) -> str:
        """running, completed, failed, cancelled, …"""
        return (await self._head(await self._calls())).state

    async def view(self, *, has_nodes: bool = True) -> FlowView:
        """The state of the flow, with or without its nodes."""
        calls = await self._calls()
        head = await self._head(calls)
        return FlowView(
            id=self.id,
            name=head.name,
            state=head.state,
            total=head.total,
            left=head.left,
            created_at=head.created_at,
            finished_at=head.finished_at,
            nodes=tuple([one async for one in self._nodes(calls, head.total)] if has_nodes else ()),
        )

    async def progress(self) -> float:
        """Which part of its nodes have ended, 0 to 1."""
        head = await self._head(await self._calls())
        return 1.0 - head.left / head.total if head.total else 0.0

    async def wait(self, timeout: timedelta | str | None = None) -> FlowView:
        """Wait until the flow has ended, successfully or not, and return its state."""
        calls = await self._calls()

        async def is_over() -> bool:
            head = await self._head(calls)
            return head.state in _FINAL and not head.left

        await until_over(is_over, f"flow {self.id}", timeout)
        return await self.view()

    async def result(
        self,
        name: str,
        timeout: timedelta | str | None = None,
        *,
        type: Any = Any,  # noqa: A002 - as `Input.value`
    ) -> Any:
        """Wait for the flow, and return a node's result, as plain values or as `type`.

        The flow keeps results itself, even if retention has removed the job. Raises JobFailed when
        the job is dead, and JobCancelled when it was cancelled or skipped.
        """
        view = await self.wait(timeout)
        node = _find(view, name)
        if node.state != "completed":
            raise _failure(view, node)
        return codec_for(type).decode(node.outcome or b"null")

    async def node(self, name: str) -> Handle[Any]:
        """The job of a node; it may not have been enqueued yet."""
        node = _find(await self.view(), name)
        return Handle(self._app, node.queue, node.job, codec_for(Any))

    # -- changing -------------------------------------------------------------------------------

    async def cancel(self, *, by: str | None = None) -> None:
        """Enqueue no more of its jobs, and cancel those that wait or run; the event names `by`."""
        with on_behalf(by):
            await self._do("cancel")
            await self._carry()

    async def rerun(self, *, by: str | None = None) -> None:
        """Run a failed or cancelled flow again, with new jobs for nodes that did not complete.

        Its dead jobs are resolved at the dead-letter desk, since the new jobs replace them.
        """
        calls = await self._calls()
        last = await self._refuse_live(calls)
        with on_behalf(by):
            run = int(await self._do("rerun"))
        total = (await self._head(calls)).total
        nodes = [one async for one in self._read(calls, total)]
        left = {number for number, node in enumerate(nodes, 1) if node.state != "completed"}
        fields: list[Any] = []
        for number in sorted(left):
            job = job_of(self._queue, self._flow, number, run)
            fields += _afresh(number, nodes[number - 1], left, job)
        for start in range(0, len(fields), 6 * SLICE):
            await self._write(calls, "put", *fields[start : start + 6 * SLICE], run=run)
        await self._write(calls, "start", run=run, nodes=total, left=len(left))
        await self._carry()
        await self._resolve([nodes[number - 1] for number in left], last)

    async def _refuse_live(self, calls: FlowCalls) -> dict[str, str]:
        """Refuse while a job that was rerun on its own is still live.

        Returns the last job of each failed node.
        """
        last: dict[str, str] = {}
        head = await self._head(calls)
        async for node in self._read(calls, head.total):
            if node.state in _MENDABLE:
                last[node.name] = job = await self._last_of(node)
                state = await Handle(self._app, node.queue, job, codec_for(Any)).state()
                if state is not None and state not in FINISHED:
                    raise InvalidTransition(
                        f"cannot rerun flow {self.id}: job {job} of node {node.name} was run "
                        f"again and is {state.value}; wait for it",
                        op="rerun",
                    )
        return last

    async def _last_of(self, node: _Raw) -> str:
        """The node's job, or the last one that it was retried as."""
        job = node.job
        while node.state == "dead" and node.queue in self._app.queues:
            letter = await self._app.dead_letters.get(node.queue, job)
            if letter is None or letter.retried_as is None:
                break
            job = letter.retried_as
        return job

    async def _resolve(self, nodes: Sequence[_Raw], last: Mapping[str, str]) -> None:
        for node in nodes:
            if node.state == "dead":
                with contextlib.suppress(FaenaError):  # removed, or not pending any more
                    await self._app.dead_letters.resolve(
                        node.queue,
                        last.get(node.name, node.job),
                        by="faena",
                        reason=f"flow {self.id} was run again",
                    )

    async def _write(self, calls: FlowCalls, verb: str, *fields: Any, **named: Any) -> None:
        answer = await calls.flow(self._queue, self._flow, verb, *fields, **named)
        if answer != "OK":
            raise InvalidTransition(
                f"another program changed flow {self.id} meanwhile: it is {answer}",
                op="rerun",
            )

    async def _carry(self) -> None:
        await (await self._app.runtime()).relay.try_to_carry(self._queue)

    async def _do(self, verb: str) -> str:
        answer = await (await self._calls()).flow(self._queue, self._flow, verb)
        if answer == "unknown":
            raise _unknown(self.id)
        if answer != "OK" and not answer.isdigit():
            hint = ", and some of its jobs have not ended yet" if answer == "cancelled" else ""
            raise InvalidTransition(f"cannot {verb} flow {self.id}: it is {answer}{hint}", op=verb)
        return answer

    # -- reading --------------------------------------------------------------------------------

    async def _calls(self) -> FlowCalls:
        return FlowCalls((await self._app.runtime()).engine)

    async def _head(self, calls: FlowCalls) -> _Head:
        found = await calls.flow_fields(self._queue, self._flow, _HEAD)
        state, total, left, name, created, finished = found
        if state is None:
            raise _unknown(self.id)
        return _Head(
            state.decode(),
            int(total or 0),
            int(left or 0),
            (name or b"").decode(),
            None if created is None else int(created),
            None if finished is None else int(finished),
        )

    async def _read(self, calls: FlowCalls, total: int) -> AsyncIterator[_Raw]:
        """Raw nodes, in slices."""
        for start in range(1, total + 1, SLICE):
            numbers = range(start, min(start + SLICE, total + 1))
            names = [f"{part}:{number}" for number in numbers for part in "vspr"]
            found = await calls.flow_fields(self._queue, self._flow, names)
            for at in range(0, len(found), 4):
                yield _Raw.of(found[at : at + 4])

    async def _nodes(self, calls: FlowCalls, total: int) -> AsyncIterator[NodeView]:
        raw = [one async for one in self._read(calls, total)]
        for node in raw:
            yield NodeView(
                name=node.name,
                queue=node.queue,
                task=node.task,
                job=node.job,
                state=node.state,
                after=tuple(raw[abs(parent) - 1].name for parent in node.parents),
                outcome=node.words or None,
            )

    def __repr__(self) -> str:
        return f"<Flow {self.id}>"


@dataclass(slots=True)
class _Raw:
    queue: str
    job: str
    name: str
    task: str
    state: str
    parents: list[int]
    words: bytes | None

    @classmethod
    def of(cls, found: Sequence[bytes | None]) -> _Raw:
        seen, state, parents, words = found
        queue, job, name, task = _unpack(seen or b"\x94\xa0\xa0\xa0\xa0")
        standing = (state or b"waiting").decode().partition(" ")[0]
        return cls(queue, job, name, task, standing, _unpack(parents or b"\x90"), words)


def _afresh(number: int, node: _Raw, left: set[int], job: str) -> list[Any]:
    waits = sum(abs(parent) in left for parent in node.parents)
    return [
        *(f"v:{number}", _pack([node.queue, job, node.name, node.task])),
        *(f"s:{number}", f"waiting {waits} 0"),
        *(f"r:{number}", ""),
    ]


def _unknown(flow: str) -> JobNotFound:
    return JobNotFound(f"no flow {flow} (flows are kept for 7 days after their end)", op="flow")


def _find(view: FlowView, name: str) -> NodeView:
    found = {node.name: node for node in view.nodes}
    if as_text(name) not in found:
        raise ConfigError(
            f"no node {shown(name)} in flow {view.id}; {nearest(name, found)}",
            field="node",
            value=name,
        )
    return found[name]


def _failure(view: FlowView, node: NodeView) -> JobFailed:
    if node.state == "dead":
        error = msgspec.json.decode(node.outcome, type=ErrorRecord) if node.outcome else None
        words = f"{error.name}: {error.message}" if error else "no error was recorded"
        return JobFailed(f"node {node.name} of flow {view.id} is dead: {words}", error=error)
    failed = [one.name for one in view.nodes if one.state in _MENDABLE and one is not node]
    because = f" because of {', '.join(failed)}" if failed and node.state == "skipped" else ""
    return JobCancelled(f"node {node.name} of flow {view.id} was {node.state}{because}")
