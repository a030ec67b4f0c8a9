"""Flows: jobs of any queues, each enqueued when the jobs it waits for have ended.

    flow = app.flow("invoice")
    cae = flow.add(request_cae.draft(invoice, tenant="org-1"))
    pdf = flow.add(render_pdf.draft(invoice), after=[cae])
    flow.add(send.draft(invoice), after={pdf: "fail", stamp: "ignore"})
    running = await flow.start()
    await running.wait("5m")

A plan is checked as a whole and written in parts; it is invisible, and no job of it is enqueued,
until one call starts it. After that, scripts decide at the queue of its first node: see `flow` and
`receive`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from faena.engine.calls.flows import FlowCalls, Made
from faena.engine.envelope import Facts
from faena.errors import ConfigError, JobConflict, JobNotFound, nearest, shown
from faena.flows.flow import SLICE, Flow, check_id, job_of
from faena.job import Spec
from faena.middleware import wrap_enqueue
from faena.options import Durability, check_tells
from faena.options.fields import check_choice
from faena.producing.receipt import Receipt
from faena.producing.sealing import digest_of, time_facts
from faena.task import Draft
from faena.values.names import check_label

if TYPE_CHECKING:
    from faena.app import Faena

RULES: Final = ("fail", "continue", "ignore")
MOST_NODES: Final = 10_000

_FIELDS: Final = 10
"""Names and values that are written of a node."""
_LARGEST: Final = 256 << 10
"""Bytes of jobs in one call, after which the rest goes into the next."""

_pack = msgspec.msgpack.encode


@dataclass(eq=False, slots=True)
class Node:
    """One job of a plan."""

    name: str
    draft: Draft[Any]
    after: Mapping[str, str]
    """The nodes it waits for, each with what happens to this node if that one fails."""


After = Iterable["Node | str"] | Mapping["Node | str", str] | Mapping[Node, str] | Mapping[str, str]


class Plan:
    """A flow that is not started yet."""

    def __init__(self, app: Faena, name: str = "flow", *, id: str | None = None) -> None:  # noqa: A002
        """With an `id` of your own, the same flow is not started twice."""
        self._app = app
        self.name = check_label("flow", name)
        self._id = app.new_id() if id is None else check_id(id)
        self.nodes: dict[str, Node] = {}
        self._stems: Counter[str] = Counter()

    def add(
        self,
        draft: Draft[Any],
        *,
        name: str | None = None,
        after: After = (),
        on_failure: str = "fail",
    ) -> Node:
        """Add a job that is enqueued when all jobs in `after` have ended.

        If one of those fails: with "fail", the default, this job is skipped and the flow fails;
        with "continue" and "ignore" it runs anyway, and with "ignore" the failed node is not among
        its `parents`. `after` may set a rule for each node: `after={cae: "fail", pdf: "ignore"}`.
        """
        check_draft(draft)
        chosen = self._name_for(draft) if name is None else check_label("node", name)
        if chosen in self.nodes:
            raise ConfigError(
                f"names of nodes must be unique in a flow, got {shown(chosen)} twice", field="name"
            )
        check_choice("on_failure", on_failure, RULES)
        node = Node(chosen, draft, self._rules(after, on_failure))
        self.nodes[chosen] = node
        return node

    def _rules(self, after: Any, default: str) -> dict[str, str]:
        if after is None or isinstance(after, Node | str):
            after = () if after is None else (after,)
        if not isinstance(after, Iterable):
            raise _bad_after(after)
        pairs = after.items() if isinstance(after, Mapping) else ((one, default) for one in after)
        rules: dict[str, str] = {}
        for node, rule in pairs:
            check_choice("on_failure", rule, RULES)
            if not isinstance(node, Node | str):
                raise _bad_after(node)
            if isinstance(node, Node) and self.nodes.get(node.name) is not node:
                raise ConfigError(
                    f"after must be nodes of this flow, got {shown(node.name)} of another one",
                    field="after",
                )
            rules[node.name if isinstance(node, Node) else node] = rule
        return rules

    def _name_for(self, draft: Draft[Any]) -> str:
        stem = draft.task.name
        while True:
            self._stems[stem] += 1
            number = self._stems[stem]
            if (name := stem if number == 1 else f"{stem}-{number}") not in self.nodes:
                return name

    # -- beginning ------------------------------------------------------------------------------

    async def start(self) -> Flow:
        """Check the plan, write it and start it; safe to repeat after a failure."""
        drawn = _Drawing(self)
        first = drawn.nodes[0].draft.task
        if (tracing := self._app.tracing) is None:
            return await self._start(drawn, first.queue)
        number = len(drawn.nodes)
        with tracing.sending(first.queue, first.name, number=number, operation="flow.start"):
            return await self._start(drawn, first.queue)

    async def _start(self, drawn: _Drawing, queue: str) -> Flow:
        runtime = await self._app.runtime()
        calls = FlowCalls(runtime.engine)
        flow = Flow(self._app, f"{queue}/{self._id}")
        digest, verb, run = drawn.digest(), "open", 1
        head = ("name", self.name, "plan", digest)
        async for fields in drawn.slices(queue, self._id):
            written = (*head, *fields)
            if await calls.flow(queue, self._id, verb, *written, run=run, digest=digest) != "OK":
                await self._refuse_another(calls, queue, digest)
                return flow  # it has begun: by an earlier call
            verb = "put"
        total = len(drawn.nodes)
        begun = {"run": run, "nodes": total, "left": total, "digest": digest}
        answer = await calls.flow(queue, self._id, "start", **begun)
        if answer == "unknown":
            raise JobNotFound(
                f"flow {flow.id} was not started within an hour: start it again", op="start"
            )
        if answer != "OK":  # it has begun meanwhile
            await self._refuse_another(calls, queue, digest)
        await runtime.relay.try_to_carry(queue)
        return flow

    async def _refuse_another(self, calls: FlowCalls, queue: str, digest: str) -> None:
        (begun,) = await calls.flow_fields(queue, self._id, ["plan"])
        if begun is not None and begun.decode() != digest:
            raise JobConflict(
                f"flow {queue}/{self._id} was started with another plan: use another id",
                op="start",
            )


def _bad_after(given: Any) -> ConfigError:
    return ConfigError(
        "after must be nodes of the flow or their names, such as after=[cae], got "
        f"{type(given).__name__}",
        field="after",
    )


class _Drawing:
    """A plan whose nodes have numbers, in the order in which they were added."""

    def __init__(self, plan: Plan) -> None:
        self.nodes = list(plan.nodes.values())
        if not 1 <= len(self.nodes) <= MOST_NODES:
            raise ConfigError(
                f"a flow must have 1 to {MOST_NODES} nodes, got {len(self.nodes)}", field="nodes"
            )
        self._numbers = {node.name: at for at, node in enumerate(self.nodes, 1)}
        self._children: dict[str, list[tuple[int, str]]] = {name: [] for name in self._numbers}
        for node in self.nodes:
            for parent, rule in node.after.items():
                if parent not in self._numbers:
                    raise ConfigError(
                        f"node {node.name!r} comes after {parent!r}, which is not in the flow; "
                        f"{nearest(parent, self._numbers)}",
                        field="after",
                        value=parent,
                    )
                self._children[parent].append((self._numbers[node.name], rule))
        _check_acyclic(plan.nodes)

    def digest(self) -> str:
        """What makes two plans of one id the same: jobs, and how they wait for each other."""
        parts = [
            (node.name, one.task.queue, digest_of(one.task.spec(one)), sorted(node.after.items()))
            for node in self.nodes
            for one in [node.draft]
        ]
        return hashlib.blake2b(repr(parts).encode(), digest_size=12).hexdigest()

    async def slices(self, queue: str, flow: str) -> AsyncIterator[list[Any]]:
        """What is written of the nodes, in parts: so many of them, and so many bytes."""
        fields: list[Any] = []
        size = 0
        for number, node in enumerate(self.nodes, 1):
            made = await make(node.draft, f"f:{queue}:{flow}:{number}", job_of(queue, flow, number))
            fields += self._fields(number, node, made)
            size += len(made.body)
            if len(fields) >= SLICE * _FIELDS or size > _LARGEST:
                yield fields
                fields, size = [], 0
        if fields:
            yield fields

    def _fields(self, number: int, node: Node, made: Made) -> list[Any]:
        kin = self._children[node.name]
        is_tolerated = bool(kin) and all(rule != "fail" for _, rule in kin)
        parents = [
            self._numbers[parent] if rule != "ignore" else -self._numbers[parent]
            for parent, rule in node.after.items()
        ]
        flat = [part for pair in kin for part in pair]
        task = node.draft.task
        return [
            *(f"v:{number}", _pack([task.queue, made.job, node.name, task.name])),
            *(f"j:{number}", made.pack()),
            *(f"k:{number}", _pack([int(is_tolerated), *flat])),
            *(f"p:{number}", _pack(parents)),
            *(f"s:{number}", f"waiting {len(parents)} 0"),
        ]


async def make(draft: Draft[Any], tells: str, job: str) -> Made:
    """What the job of a draft is made of, as middleware would have it; sealed when it is sent."""
    task = draft.task
    await task.prepare()
    ready = task.spec(draft)

    async def keep(_queue: str, spec: Spec) -> Receipt[Any]:
        nonlocal ready
        ready = spec
        return Receipt(id=job, durability="memory", task=task)

    if task.app.middleware:
        await wrap_enqueue(task.app.middleware, keep)(task.queue, ready)
    facts: Facts = {
        **task.lane_facts(ready.tenant, ready.key, draft.options.cost),
        **time_facts(draft.options),
        "tells": check_tells(tells),
    }
    body = msgspec.json.encode(ready).decode()
    return Made(task.queue, task.priority(draft.options), facts, body, job)


_NOT_GIVEN: Final = {
    "id": "the flow or group chooses its id",
    "unique": "the flow or group enqueues it once, and would wait in vain for a duplicate",
    "replace": "the flow or group enqueues it once, and would wait in vain for a replaced job",
}
"""Options that such a job cannot have, and why."""


def check_draft(draft: Any) -> None:
    """Refuse what cannot be a job of a flow or the callback of a group."""
    if not isinstance(draft, Draft):
        raise ConfigError(
            "a job must be given as a draft, such as task.draft(payload), got "
            f"{type(draft).__name__}{_hint(draft)}",
            field="draft",
        )
    for name, why in _NOT_GIVEN.items():
        if getattr(draft.options, name) is not None:
            raise ConfigError(
                f"{name} must not be given to a job of a flow or the callback of a group: {why}",
                field=name,
            )
    if draft.options.durability != Durability():
        raise ConfigError(
            "durability must not be given to a job of a flow or the callback of a group: "
            "a worker enqueues it",
            field="durability",
        )
    draft.task.spec(draft)  # a payload that cannot be encoded is refused here, not at the start


def _hint(given: Any) -> str:
    """What was probably meant; never the thing itself, which may hold payloads."""
    is_list = isinstance(given, list | tuple) and any(isinstance(one, Draft) for one in given)
    return " of drafts: give them one by one, as in chain(*drafts)" if is_list else ""


def _check_acyclic(nodes: Mapping[str, Node]) -> None:
    """Take away what waits for nothing until nothing is left; what is left waits for itself."""
    waits = {name: len(node.after) for name, node in nodes.items()}
    children: dict[str, list[str]] = {name: [] for name in nodes}
    for name, node in nodes.items():
        for parent in node.after:
            children[parent].append(name)
    free = [name for name, number in waits.items() if not number]
    while free:
        name = free.pop()
        del waits[name]
        for child in children[name]:
            waits[child] -= 1
            if not waits[child]:
                free.append(child)
    if waits:
        path = _cycle(nodes, waits)
        raise ConfigError(
            f"nodes of a flow must not wait for themselves: {' after '.join(path)}", field="after"
        )


def _cycle(nodes: Mapping[str, Node], left: Mapping[str, int]) -> list[str]:
    path: list[str] = []
    name = next(iter(left))
    while name not in path:
        path.append(name)
        name = next(parent for parent in nodes[name].after if parent in left)
    return [*path[path.index(name) :], name]


def chain(app: Faena, drafts: Sequence[Draft[Any]], name: str = "chain") -> Plan:
    """A plan of jobs that run one after another."""
    plan = Plan(app, name)
    last: Node | None = None
    for draft in drafts:
        last = plan.add(draft, after=[] if last is None else [last])
    return plan


def chord(
    app: Faena,
    drafts: Sequence[Draft[Any]],
    finally_: Draft[Any],
    *,
    on_failure: str = "fail",
    name: str = "chord",
) -> Plan:
    """A plan of parallel jobs, and a callback when all have ended."""
    if isinstance(drafts, Draft):  # an easy slip, as chain takes them one by one
        raise ConfigError(
            "drafts of a chord must be a list, such as chord([a, b], callback), got "
            f"{type(drafts).__name__}",
            field="drafts",
        )
    plan = Plan(app, name)
    heads = [plan.add(draft) for draft in drafts]
    plan.add(finally_, after=heads, on_failure=on_failure)
    return plan
