"""Flows and groups under any interleaving: relays that sleep, die, and bring everything twice.

A plan is drawn with what becomes of each of its jobs. Workers and up to three relays make one call
at a time in any order; a relay may be left for dead between two calls, wake up late and go on
with what it had read. In the end every node is where the plan says, and no job has come twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from faena import Faena, Retain
from faena.engine import Address, Engine, Wire
from faena.engine.calls.flows import FlowCalls
from faena.engine.scripts import Settlement, Turn
from faena.engine.settings import declaration
from faena.errors import InvalidTransition
from faena.flows import Flow
from faena.flows.relay import Relay
from faena.outcomes import Buried, Completed
from faena.producing.client import Client
from faena.sharding.router import Routers
from faena.task import Draft
from tests._support.gated_wire import GatedWire, Stepped
from tests._support.rig import SECOND, T0, Clock
from tests._support.search import searching
from tests._support.valkey import Server
from tests.properties.strategies import ERROR

QUEUES = ("first", "second")
RULES = ("fail", "fail", "continue", "ignore")
_numbers = itertools.count()
_MOST_ROUNDS = 50


class Carrier(Stepped):
    """A relay that makes its next call only when it is let."""

    def __init__(self, world: World) -> None:
        super().__init__(GatedWire(Address.parse(world.url)))
        engine = world.new_engine(self.wire)
        options = {name: queue.options for name, queue in world.app.queues.items()}
        self._relay = Relay(engine, Client(engine, Routers(engine, options)))

    async def begin(self, shard: str) -> None:
        await self.start(self._relay.carry(shard))

    async def close(self) -> None:
        await self.abandon()
        await self.wire.close()


class World:
    """An app, its jobs and who carries them."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.clock = Clock(T0)
        self.namespace = f"flows{next(_numbers)}"
        self.app = Faena("flows", url, namespace=self.namespace, clock=self.clock)
        self.tasks: dict[str, Any] = {}
        for name in QUEUES:
            queue = self.app.queue(name, retain=Retain(completed_count=0))
            self.tasks[name] = queue.task(name="run")(_nothing)
        self.engine = self.new_engine(Wire(Address.parse(url)))
        self.failing: set[str] = set()
        self.came: Counter[str] = Counter()
        self._calls = itertools.count()

    def new_engine(self, wire: Wire) -> Engine:
        engine = Engine(wire, namespace=self.namespace, clock=self.clock, patience_s=60)
        for name, queue in self.app.queues.items():
            engine.know(name, declaration(queue.options))
        return engine

    def draft(self, queue: str) -> Draft[Any]:
        return self.tasks[queue].draft()

    async def work(self, queue: str, *, is_sweep: bool = False) -> int:
        """Claim what is ready, at most two, and settle it."""
        lease = f"call{next(self._calls):06d}"
        turn = Turn(lease, 2, (), None, is_sweep)
        claimed = (await self.engine.exchange(queue, "worker", "worker", turn)).claimed
        for claim in claimed:
            self.came[claim.id] += 1
        settled = [
            Settlement(
                one.id, lease, Buried(ERROR) if one.id in self.failing else Completed(b'"r"')
            )
            for one in claimed
        ]
        if settled:
            turn = Turn(f"call{next(self._calls):06d}", 0, settled)
            await self.engine.exchange(queue, "worker", "worker", turn)
        return len(claimed)

    async def settle_down(self) -> None:
        """Work and carry until nothing is left to do."""
        relay = (await self.app.runtime()).relay
        mail = FlowCalls(self.engine)
        for _ in range(_MOST_ROUNDS):
            for queue in QUEUES:
                await relay.carry(queue)
            if not sum([await self.work(queue) for queue in QUEUES]) and not any(
                [await mail.has_outbox(queue) for queue in QUEUES]
            ):
                return
        raise AssertionError(f"it does not come to an end: {await mail.pending_sends('first', 0)}")

    async def close(self) -> None:
        await self.app.close()
        await self.engine.wire.close()


async def _nothing() -> None: ...


Plan = list[tuple[str, dict[int, str], bool]]
"""For each node its queue, its parents with their rules, and whether it fails."""


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    nodes: Plan = []
    for number in range(draw(st.integers(1, 9))):
        parents = draw(st.sets(st.integers(0, number - 1), max_size=4)) if number else set()
        rules = {parent: draw(st.sampled_from(RULES)) for parent in sorted(parents)}
        nodes.append((draw(st.sampled_from(QUEUES)), rules, draw(st.integers(0, 3)) == 0))
    return nodes


def job(plan: Plan, at: int) -> str:
    """The id of a node's job: flows live at the queue of their first node."""
    return f"{plan[0][0]}.f.{at + 1}"


def expected(plan: Plan) -> list[str]:
    """Where every node ends, by the rules alone."""
    states: list[str] = []
    for _, parents, fails in plan:
        is_doomed = any(
            rule == "fail" and states[parent] != "completed" for parent, rule in parents.items()
        )
        states.append("skipped" if is_doomed else "dead" if fails else "completed")
    return states


def is_failed(plan: Plan, states: list[str]) -> bool:
    """A failure counts unless there is somebody after it, and nobody there minds."""
    for number, state in enumerate(states):
        rules = [parents[number] for _, parents, _ in plan if number in parents]
        if state != "completed" and (not rules or "fail" in rules):
            return True
    return False


async def mix_up(world: World, data: st.DataObject) -> None:
    """Let workers and relays make calls in any order; then all of them go on to their ends."""
    carriers = [Carrier(world) for _ in range(3)]
    try:
        for _ in range(data.draw(st.integers(5, 60), label="steps")):
            await step(world, data, carriers)
        await world.settle_down()
        for carrier in carriers:
            await carrier.finish()
        await world.settle_down()
    finally:
        for carrier in carriers:
            await carrier.close()


async def step(world: World, data: st.DataObject, carriers: list[Carrier]) -> None:
    kind = data.draw(st.integers(0, 9), label="kind")
    queue = data.draw(st.sampled_from(QUEUES), label="queue")
    carrier = carriers[kind % len(carriers)]
    if kind == 9:
        world.clock.now += data.draw(st.sampled_from([SECOND, 15 * SECOND, 25 * SECOND]))
    elif kind >= 7:
        await world.work(queue, is_sweep=True)
    elif not carrier.is_busy:
        await carrier.begin(queue)
    else:
        await carrier.step(is_doubled=data.draw(st.booleans(), label="doubled"))


@searching(25, full=400)
@given(data=st.data())
def test_every_node_ends_as_the_plan_says_and_comes_once(
    server: Server, data: st.DataObject
) -> None:
    asyncio.run(_flow(server.url, data))


async def begin(world: World, plan: Plan) -> Flow:
    drawn = world.app.flow(id="f")
    for number, (queue, parents, fails) in enumerate(plan):
        after = {f"n{parent}": rule for parent, rule in parents.items()}
        drawn.add(world.draft(queue), name=f"n{number}", after=after)
        if fails:
            world.failing.add(job(plan, number))
    return await drawn.start()


async def _flow(url: str, data: st.DataObject) -> None:
    plan = data.draw(plans(), label="plan")
    world = World(url)
    try:
        flow = await begin(world, plan)
        await mix_up(world, data)
        view = await flow.view()
        states = expected(plan)
        assert [node.state for node in view.nodes] == states
        assert view.state == ("failed" if is_failed(plan, states) else "completed")
        assert view.left == 0
        ran = {job(plan, at) for at, state in enumerate(states) if state != "skipped"}
        assert world.came == Counter(ran)
        await _mend(world, data, flow, plan)
    finally:
        await world.close()


async def _mend(world: World, data: st.DataObject, flow: Flow, plan: Plan) -> None:
    """Run some dead jobs again, which complete now: what they had stopped goes on, and no more."""
    dead = sorted(at for at, state in enumerate(expected(plan)) if state == "dead")
    mended = data.draw(st.sets(st.sampled_from(dead)), label="mended") if dead else set[int]()
    before = Counter(world.came)
    for at in mended:
        world.failing.discard(job(plan, at))
        assert await world.engine.rerun(plan[at][0], [job(plan, at)]) == ["ready"]
    await mix_up(world, data)
    now = [
        (queue, parents, fails and at not in mended)
        for at, (queue, parents, fails) in enumerate(plan)
    ]
    view = await flow.view()
    states = expected(now)
    assert [node.state for node in view.nodes] == states
    assert view.state == ("failed" if is_failed(now, states) else "completed")
    assert view.left == 0
    came = {job(plan, at) for at, state in enumerate(states) if state != "skipped"} - set(before)
    assert world.came - before == Counter({*came, *(job(plan, at) for at in mended)})


@searching(25, full=400)
@given(data=st.data())
def test_a_flow_that_is_called_off_ends_and_can_be_taken_up(
    server: Server, data: st.DataObject
) -> None:
    asyncio.run(_cancel(server.url, data))


async def _cancel(url: str, data: st.DataObject) -> None:
    plan = data.draw(plans(), label="plan")
    world = World(url)
    try:
        flow = await begin(world, plan)
        for _ in range(data.draw(st.integers(0, 10), label="before")):
            await world.work(data.draw(st.sampled_from(QUEUES)))
        with contextlib.suppress(InvalidTransition):
            await flow.cancel()
        await mix_up(world, data)
        view = await flow.view()
        assert view.left == 0
        assert {node.state for node in view.nodes} <= {"completed", "dead", "cancelled", "skipped"}
        if view.state == "completed":
            return
        world.failing.clear()
        done = {node.job for node in view.nodes if node.state == "completed"}
        before = Counter(world.came)
        await flow.rerun()
        await mix_up(world, data)
        view = await flow.view()
        assert (view.state, view.left) == ("completed", 0)
        again = Counter(node.job for node in view.nodes if node.job not in done)
        assert world.came - before == again
    finally:
        await world.close()


@searching(25, full=400)
@given(data=st.data())
def test_a_group_counts_each_member_and_calls_back_once(
    server: Server, data: st.DataObject
) -> None:
    asyncio.run(_group(server.url, data))


async def _group(url: str, data: st.DataObject) -> None:
    members = data.draw(st.lists(st.tuples(st.sampled_from(QUEUES), st.integers(0, 5)), max_size=8))
    world = World(url)
    try:
        group = world.app.group(
            id="g", on_complete=world.draft("first"), on_success=world.draft("second")
        )
        for at, (queue, luck) in enumerate(members):
            await group.enqueue(world.tasks[queue], id=f"m{at}")
            if luck == 0:
                world.failing.add(f"m{at}")
        await group.seal()
        await mix_up(world, data)
        view = await group.view()
        assert (view.completed, view.dead) == (
            len(members) - len(world.failing),
            len(world.failing),
        )
        callbacks = {"first.g.complete"} | (set() if world.failing else {"first.g.success"})
        assert world.came == Counter({*(f"m{at}" for at in range(len(members))), *callbacks})
        assert view.callbacks["complete"] == "completed"
    finally:
        await world.close()
