"""Flows from end to end: order, results, failures, cancelling, running again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from faena import Discard, Faena, Job, Retain, Retry
from faena.errors import (
    ConfigError,
    InvalidTransition,
    JobCancelled,
    JobConflict,
    JobFailed,
    JobNotFound,
    ResultTimeout,
)
from faena.flows import Flow, FlowView
from faena.flows.plan import Plan
from faena.task import Task
from faena.testing import harness
from tests._support.eventually import eventually
from tests._support.valkey import Server
from tests.flows.conftest import Working


class Shop:
    """Two queues whose tasks note what they did."""

    def __init__(self, app: Faena) -> None:
        self.app = app
        self.done: list[str] = []
        self.parents: dict[str, dict[str, tuple[str, Any]]] = {}
        self.failing: set[str] = set()
        self.gate = asyncio.Event()
        self.gate.set()
        keep = Retain(completed_count=0)
        first = app.queue("first", retry=Retry.never(), retain=keep)
        second = app.queue("second", retry=Retry.never(), retain=keep, fair=True)
        self.one: Task[str, str] = first.task(name="one")(self._run)
        self.two: Task[str, str] = second.task(name="two")(self._run)

    async def _run(self, name: str, job: Job) -> str:
        self.parents[name] = {k: (v.state, v.value()) for k, v in job.parents.items()}
        await self.gate.wait()
        if name in self.failing:
            raise Discard(f"{name} fails")
        self.done.append(name)
        return name.upper()


@pytest.fixture
def shop(app: Faena) -> Shop:
    return Shop(app)


async def test_nodes_of_two_queues_run_in_order_and_see_results(
    app: Faena, shop: Shop, working: Working
) -> None:
    plan = app.flow("diamond")
    a = plan.add(shop.one.draft("a"), name="a")
    b = plan.add(shop.two.draft("b", tenant="acme"), name="b", after=[a])
    c = plan.add(shop.one.draft("c"), name="c", after=[a])
    plan.add(shop.two.draft("d"), name="d", after=[b, c])
    async with working(app):
        flow = await plan.start()
        view = await flow.wait("10s")
    assert view.state == "completed", [(n.name, n.state, n.words) for n in view.nodes]
    assert view.progress == 1.0
    assert view.counts == {"completed": 4}
    assert shop.done[0] == "a"
    assert sorted(shop.done[1:3]) == ["b", "c"]
    assert shop.done[3:] == ["d"]
    assert shop.parents["d"] == {"b": ("completed", "B"), "c": ("completed", "C")}
    assert [node.after for node in view.nodes] == [(), ("a",), ("a",), ("b", "c")]


async def test_nothing_of_a_flow_is_sent_before_its_parents_have_ended(
    app: Faena, shop: Shop
) -> None:
    plan = app.chain(shop.one.draft("a"), shop.two.draft("b"))
    flow = await plan.start()
    assert (await app.queues["first"].counts())["ready"] == 1
    assert (await app.queues["second"].counts())["ready"] == 0
    assert await flow.state() == "running"
    assert await flow.progress() == 0.0


async def test_a_failure_skips_what_comes_after_it(
    app: Faena, shop: Shop, working: Working
) -> None:
    shop.failing = {"b"}
    plan = app.chain(*(shop.one.draft(name) for name in "abcd"))
    async with working(app):
        flow = await plan.start()
        view = await flow.wait("10s")
    assert view.state == "failed"
    assert [node.state for node in view.nodes] == ["completed", "dead", "skipped", "skipped"]
    assert b"b fails" in (view.nodes[1].outcome or b"")
    assert shop.done == ["a"]
    assert await flow.result("one", "10s") == "A"
    with pytest.raises(JobFailed, match=r"one-2 .* is dead: Discard: b fails"):
        await flow.result("one-2", "10s")
    with pytest.raises(JobCancelled, match=r"node one-3 .* was skipped because of one-2"):
        await flow.result("one-3", "10s")


@pytest.mark.parametrize(
    ("rule", "state", "seen"),
    [
        ("continue", "completed", {"a": ("dead", None), "b": ("completed", "B")}),
        ("ignore", "completed", {"b": ("completed", "B")}),
        ("fail", "failed", None),
    ],
)
async def test_an_edge_says_what_a_failure_means(
    app: Faena, shop: Shop, working: Working, rule: str, state: str, seen: Any
) -> None:
    shop.failing = {"a"}
    plan = app.flow()
    a = plan.add(shop.one.draft("a"), name="a")
    b = plan.add(shop.one.draft("b"), name="b")
    plan.add(shop.two.draft("c"), name="c", after={a: rule, b: "fail"})
    async with working(app):
        view = await (await plan.start()).wait("10s")
    assert view.state == state
    assert shop.parents.get("c") == seen


async def test_a_chord_is_told_of_all(app: Faena, shop: Shop, working: Working) -> None:
    plan = app.chord([shop.one.draft(str(n)) for n in range(30)], shop.two.draft("end"))
    async with working(app):
        view = await (await plan.start()).wait("10s")
    assert view.state == "completed", [(n.name, n.state, n.words) for n in view.nodes]
    assert shop.done[-1] == "end"
    assert sorted(value for _, value in shop.parents["end"].values()) == sorted(
        str(n) for n in range(30)
    )


async def test_a_cancelled_flow_sends_nothing_more(
    app: Faena, shop: Shop, working: Working
) -> None:
    shop.gate.clear()
    plan = app.chain(*(shop.one.draft(name) for name in "abc"))
    async with working(app):
        flow = await plan.start()
        await eventually(lambda: "a" in shop.parents)
        await flow.cancel()
        view = await flow.wait("10s")
    assert view.state == "cancelled"
    assert [node.state for node in view.nodes] == ["cancelled"] * 3
    assert shop.done == []


async def failed_at_b(app: Faena, shop: Shop) -> tuple[Flow, FlowView]:
    """A chain of three whose second job is dead, and would complete by now."""
    shop.failing = {"b"}
    flow = await app.chain(*(shop.one.draft(name) for name in "abc")).start()
    view = await flow.wait("10s")
    assert view.state == "failed"
    shop.failing.clear()
    return flow, view


async def test_a_failed_flow_is_taken_up_where_it_failed(
    app: Faena, shop: Shop, working: Working
) -> None:
    async with working(app):
        flow, _ = await failed_at_b(app, shop)
        await flow.rerun()
        view = await flow.wait("10s")
    assert view.state == "completed", [(n.name, n.state, n.words) for n in view.nodes]
    assert shop.done == ["a", "b", "c"]
    assert shop.parents["c"] == {"one-2": ("completed", "B")}


async def test_a_dead_job_that_is_run_again_carries_its_flow_on(
    app: Faena, shop: Shop, working: Working
) -> None:
    async with working(app):
        flow, _ = await failed_at_b(app, shop)
        await (await flow.node("one-2")).rerun()
        await eventually(lambda: shop.done == ["a", "b", "c"])
        view = await flow.wait("10s")
    assert view.state == "completed", [(n.name, n.state, n.words) for n in view.nodes]


async def test_a_job_removed_by_hand_counts_as_cancelled(
    app: Faena, shop: Shop, working: Working
) -> None:
    flow = await app.chain(shop.one.draft("a"), shop.two.draft("b")).start()
    await app.queues["first"].drain()
    async with working(app):
        view = await flow.wait("20s")
    assert view.state == "failed"
    assert [node.state for node in view.nodes] == ["cancelled", "skipped"]


async def test_the_same_id_is_the_same_flow(app: Faena, shop: Shop, working: Working) -> None:
    async with working(app):
        for _ in range(3):
            plan = app.flow("once", id="order-7")
            plan.add(shop.one.draft("a"))
            flow = await plan.start()
            await flow.wait("10s")
    assert flow.id == "first/order-7"
    assert shop.done == ["a"]


async def wide(app: Faena, shop: Shop, working: Working) -> FlowView:
    """The end of a flow of `root`, seven hundred after it, and `end` after them."""
    plan = app.flow("wide")
    root = plan.add(shop.one.draft("root"), name="root")
    middle = [plan.add(shop.one.draft(str(n)), after=[root]) for n in range(700)]
    plan.add(shop.two.draft("end"), name="end", after=middle)
    async with working(app):
        return await (await plan.start()).wait("30s")


async def test_a_wide_flow_is_worked_off_in_parts(app: Faena, shop: Shop, working: Working) -> None:
    view = await wide(app, shop, working)
    assert view.state == "completed", [(n.name, n.state, n.words) for n in view.nodes]
    assert len(shop.done) == 702
    assert shop.done[0] == "root"
    assert shop.done[-1] == "end"


async def test_a_failure_is_passed_on_in_parts(app: Faena, shop: Shop, working: Working) -> None:
    shop.failing = {"root"}
    view = await wide(app, shop, working)
    assert view.state == "failed"
    assert view.counts == {"dead": 1, "skipped": 701}


async def test_waiting_has_an_end(app: Faena, shop: Shop) -> None:
    flow = await app.chain(shop.one.draft("a")).start()
    with pytest.raises(ResultTimeout, match="has not ended after"):
        await flow.wait("50ms")


async def test_bad_plans_are_refused_and_change_nothing(app: Faena, shop: Shop) -> None:
    plan = app.flow()
    with pytest.raises(ConfigError, match="1 to 10000 nodes, got 0"):
        await plan.start()
    plan.add(shop.one.draft("a"), name="a", after=["c"])
    plan.add(shop.one.draft("b"), name="b", after=["a"])
    with pytest.raises(ConfigError, match="comes after 'c', which is not in the flow"):
        await plan.start()
    plan.add(shop.one.draft("c"), name="c", after=["b"])
    with pytest.raises(ConfigError, match="wait for themselves: a after c after b after a"):
        await plan.start()
    with pytest.raises(ConfigError, match="names of nodes must be unique in a flow, got 'a' twice"):
        plan.add(shop.one.draft("x"), name="a")
    with pytest.raises(ConfigError, match="on_failure must be"):
        plan.add(shop.one.draft("x"), after=["a"], on_failure="stop")
    with pytest.raises(ConfigError, match="id must not be given"):
        plan.add(shop.one.draft("x", id="mine"))
    with pytest.raises(ConfigError, match="unique must not be given"):
        plan.add(shop.one.draft("x", unique="mine"))
    assert (await app.queues["first"].counts())["ready"] == 0


async def test_what_cannot_be_done_with_a_flow_is_said(
    app: Faena, shop: Shop, working: Working
) -> None:
    with pytest.raises(ConfigError, match="queue/id"):
        app.running_flow("nonsense")
    with pytest.raises(JobNotFound, match="no flow first/nobody"):
        await app.running_flow("first/nobody").view()
    with pytest.raises(JobNotFound):
        await app.running_flow("first/nobody").cancel()
    async with working(app):
        flow = await app.chain(shop.one.draft("a")).start()
        with pytest.raises(InvalidTransition, match="it is running"):
            await flow.rerun()
        await flow.wait("10s")
        with pytest.raises(InvalidTransition, match="it is completed"):
            await flow.cancel()
        with pytest.raises(ConfigError, match="no node 'b'"):
            await flow.node("b")


async def test_a_retry_as_new_carries_the_flow_on(app: Faena, shop: Shop, working: Working) -> None:
    async with working(app):
        flow, view = await failed_at_b(app, shop)
        await app.dead_letters.retry_as_new("first", view.nodes[1].job, by="ana", reason="mended")
        await eventually(lambda: shop.done == ["a", "b", "c"])
        view = await flow.wait("10s")
    assert view.state == "completed"
    assert view.counts == {"completed": 3}


async def test_a_flow_waits_for_what_the_desk_has_made_of_its_dead_jobs(
    app: Faena, shop: Shop, working: Working
) -> None:
    shop.failing = {"a"}
    async with working(app):
        flow = await app.chain(shop.one.draft("a"), shop.two.draft("b")).start()
        (dead, _) = (await flow.wait("10s")).nodes
    made = await app.dead_letters.retry_as_new("first", dead.job, by="ana")
    with pytest.raises(InvalidTransition, match=f"job {made} of node one was run again"):
        await flow.rerun()
    async with working(app):
        await eventually(lambda: _is_dead(app, made))
    await flow.rerun()
    letter = await app.dead_letters.get("first", made)
    assert letter is not None
    assert letter.status == "resolved"
    shop.failing.clear()
    async with working(app):
        assert (await flow.wait("10s")).state == "completed"
    assert shop.done == ["a", "b"]


async def test_a_program_that_knows_the_flows_queue_only_may_rerun_it(
    app: Faena, shop: Shop, working: Working, server: Server
) -> None:
    shop.failing = {"b"}
    async with working(app):
        flow = await app.chain(shop.one.draft("a"), shop.two.draft("b")).start()
        assert (await flow.wait("10s")).state == "failed"
        shop.failing.clear()
        namespace = (await app.runtime()).engine.namespace
        other = Faena("other", server.url, namespace=namespace)
        other.queue("first")
        async with other:
            await other.running_flow(flow.id).rerun()
        assert (await flow.wait("10s")).state == "completed"


async def _is_dead(app: Faena, job: str) -> bool:
    return await app.dead_letters.get("first", job) is not None


async def test_an_id_is_one_plan(app: Faena, shop: Shop) -> None:
    def plan(*names: str) -> Plan:
        made = app.flow(id="inv-9")
        for name in names:
            made.add(shop.one.draft(name))
        return made

    flow = await plan("a").start()
    assert (await plan("a").start()).id == flow.id
    for other in (plan("b"), plan("a", "b")):
        with pytest.raises(JobConflict, match="started with another plan: use another id"):
            await other.start()
    assert (await flow.view()).total == 1


async def test_errors_of_plans_say_what_was_meant_and_no_payloads(app: Faena, shop: Shop) -> None:
    secret, other = shop.one.draft("s3cret"), shop.two.draft("b")
    untyped: Any = app
    wrong: list[tuple[Callable[[], Any], str]] = [
        (lambda: untyped.chain([secret, other]), "got list of drafts: give them one by one"),
        (lambda: untyped.chord(secret, other), r"a list, such as chord\(\[a, b\], callback"),
        (lambda: untyped.flow().add(secret, after=5), "after must be nodes of the flow or their"),
        (lambda: untyped.flow().add(secret, after=[5]), "such as after=.*got int"),
    ]
    for make, message in wrong:
        with pytest.raises(ConfigError, match=message) as caught:
            make()
        assert "s3cret" not in str(caught.value)
    assert repr(secret) == "<Draft of first/one>"


async def test_a_test_can_drain_flows_and_groups(server: Server) -> None:
    shop = Shop(Faena("drained", "redis://127.0.0.1:1/0"))
    async with harness(shop.app, url=server.url) as h:
        flow = await shop.app.chain(shop.one.draft("a"), shop.two.draft("b")).start()
        async with shop.app.group(on_complete=shop.two.draft("end")) as group:
            await group.enqueue_many(shop.one, ["x", "y"])
        report = await h.drain()
        assert (await flow.view()).state == "completed"
        assert (await group.view()).callbacks == {"complete": "completed"}
    assert shop.done.index("a") < shop.done.index("b")
    assert sorted(shop.done) == ["a", "b", "end", "x", "y"]
    assert len(report.runs) == 5


async def test_a_parents_result_is_read_as_any_type_of_payloads(
    app: Faena, working: Working
) -> None:
    class Cae(BaseModel):
        number: int

    queue = app.queue("typed")

    @queue.task
    async def ask() -> Cae:
        return Cae(number=7)

    @queue.task
    async def use(job: Job) -> int:
        return job.parents["ask"].value(Cae).number + 1

    async with working(app):
        flow = await app.chain(ask.draft(), use.draft()).start()
        assert await flow.result("use", "10s") == 8
        assert await flow.result("ask", type=Cae) == Cae(number=7)
