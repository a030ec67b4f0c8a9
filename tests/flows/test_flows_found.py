"""Faults that reading found in flows and groups; each has a test of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from faena import Discard, Faena, Flow, Job, Middleware, Retry, Task
from faena.engine.calls.flows import FlowCalls
from faena.errors import ConfigError, InvalidTransition, StoreUnavailable
from faena.job import Spec
from tests._support.eventually import eventually
from tests._support.valkey import Server
from tests.flows.conftest import Working


class Shop:
    """Two queues and what their tasks did."""

    def __init__(self, app: Faena) -> None:
        self.app = app
        self.done: list[str] = []
        self.failing: set[str] = set()
        self.groups: dict[str, dict[str, int]] = {}
        self.first = app.queue("first", retry=Retry.never(), fair=True)
        self.second = app.queue("second", retry=Retry.never())
        self.one: Task[str, str] = self.first.task(name="one")(self._run)
        self.two: Task[str, str] = self.second.task(name="two")(self._run)

    async def _run(self, word: str, job: Job) -> str:
        self.groups[word] = dict(job.group)
        if word in self.failing:
            raise Discard("as planned")
        self.done.append(word)
        return word

    async def mail(self) -> FlowCalls:
        return FlowCalls((await self.app.runtime()).engine)

    async def start_only(self, plan: Any) -> Flow:
        """As if whoever starts it died before carrying anything."""
        relay = (await self.app.runtime()).relay
        carry, relay.try_to_carry = relay.try_to_carry, _nothing
        try:
            return await plan.start()
        finally:
            relay.try_to_carry = carry


async def _nothing(_shard: str) -> None: ...


@pytest.fixture
def shop(app: Faena) -> Shop:
    return Shop(app)


async def test_moving_a_lane_ends_none_of_its_jobs(shop: Shop, working: Working) -> None:
    app = shop.app
    flow = await app.chain(
        shop.one.draft("a", tenant="t3"), shop.one.draft("b", tenant="t3")
    ).start()
    async with app.group(on_complete=shop.two.draft("end")) as group:
        for number in range(12):
            await group.enqueue(shop.one, str(number), tenant=f"t{number}")
    await shop.first.reshard(3)
    await shop.first.tenant("t3").dedicate()
    view = await group.view()
    assert (view.completed, view.cancelled) == (0, 0)
    async with working(app):
        await eventually(lambda: "end" in shop.groups)
        assert (await flow.wait("10s")).counts == {"completed": 2}
    assert shop.groups["end"] == {"total": 12, "completed": 12, "dead": 0, "cancelled": 0}


async def test_a_flow_that_is_rerun_resolves_what_it_replaces(shop: Shop, working: Working) -> None:
    shop.failing = {"a"}
    async with working(shop.app):
        flow = await shop.app.chain(shop.one.draft("a"), shop.one.draft("b")).start()
        await flow.wait("10s")
        shop.failing.clear()
        await flow.rerun()
        assert (await flow.wait("10s")).state == "completed"
    stats = await shop.app.dead_letters.list(status="pending")
    assert stats.items == ()
    (item,) = (await shop.app.dead_letters.list()).items
    assert item.status.value == "resolved"


async def test_a_flow_is_not_rerun_while_a_job_of_it_runs_again(
    shop: Shop, working: Working
) -> None:
    shop.failing = {"a"}
    async with working(shop.app):
        flow = await shop.app.chain(shop.one.draft("a"), shop.one.draft("b")).start()
        await flow.wait("10s")
    await (await flow.node("one")).rerun()
    with pytest.raises(InvalidTransition, match="was run again and is ready; wait for it"):
        await flow.rerun()
    assert await flow.state() == "failed"


async def test_flows_of_one_id_at_two_queues_are_two(shop: Shop, working: Working) -> None:
    plans = []
    for task, names in ((shop.one, "ab"), (shop.two, "cd")):
        plan = shop.app.flow(id="inv-9")
        first = plan.add(task.draft(names[0]))
        plan.add(shop.two.draft(names[1]), after=[first])
        plans.append(plan)
    async with working(shop.app):
        for flow in [await plan.start() for plan in plans]:
            assert (await flow.wait("10s")).state == "completed"
    assert sorted(shop.done) == ["a", "b", "c", "d"]


async def test_an_id_that_is_taken_fails_the_node(shop: Shop, working: Working) -> None:
    await shop.one.enqueue("mine", id="first.z.1")
    async with working(shop.app):
        plan = shop.app.flow(id="z")
        plan.add(shop.one.draft("a"))
        view = await (await plan.start()).wait("10s")
    assert view.state == "failed"
    assert b"another job has the id" in (view.nodes[0].outcome or b"")


async def test_a_flow_whose_job_is_lost_can_be_called_off_and_taken_up(
    shop: Shop, working: Working
) -> None:
    flow = await shop.app.chain(shop.one.draft("a"), shop.one.draft("b")).start()
    engine = (await shop.app.runtime()).engine
    job = (await flow.view()).nodes[0].job
    for verb, name in (("ZREM", "ready"), ("HDEL", "specs"), ("HDEL", "marks")):
        await engine.command(verb, "first", name, job)
    await flow.cancel()
    assert (await flow.wait("5s")).state == "cancelled"
    await flow.rerun()
    async with working(shop.app):
        assert (await flow.wait("10s")).state == "completed"


async def test_a_flow_hears_of_a_queue_that_is_obliterated(shop: Shop, working: Working) -> None:
    plan = shop.app.flow()
    plan.add(shop.one.draft("a"))
    plan.add(shop.two.draft("b"))
    flow = await plan.start()
    await shop.second.obliterate()
    async with working(shop.app):
        view = await flow.wait("10s")
    assert [node.state for node in view.nodes] == ["completed", "cancelled"]


async def test_a_flow_that_is_called_off_before_its_jobs_were_sent_ends(
    shop: Shop, working: Working
) -> None:
    flow = await shop.start_only(shop.app.chain(shop.one.draft("a", delay="1h")))
    await flow.cancel()
    async with working(shop.app):
        view = await flow.wait("10s")
    assert view.counts == {"cancelled": 1}
    await flow.cancel()


async def test_members_of_an_earlier_run_are_counted(shop: Shop, working: Working) -> None:
    first = shop.app.group(id="first/g")
    for number in range(5):
        await first.enqueue(shop.one, str(number), id=f"m{number}")
    group = shop.app.group(id="first/g", on_complete=shop.two.draft("end"))
    async with group:
        for number in range(10):
            await group.enqueue(shop.one, str(number), id=f"m{number}")
            await group.enqueue(shop.one, str(number), id=f"m{number}")
    assert (await group.view()).total == 10
    with pytest.raises(InvalidTransition, match="was sealed with 10 members, not 5"):
        await first.seal()
    async with working(shop.app):
        await eventually(lambda: "end" in shop.groups)
    assert shop.groups["end"]["completed"] == 10


async def test_a_group_is_not_sealed_after_an_enqueue_that_failed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = shop.app.group(on_complete=shop.two.draft("end"))
    await group.enqueue(shop.one, "a")

    async def fail(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("gone")

    with monkeypatch.context() as patch:
        patch.setattr(shop.one, "put_many", fail)
        with pytest.raises(StoreUnavailable):
            await group.enqueue_many(shop.one, ["b"])
    with pytest.raises(InvalidTransition, match="so the number of its members is unknown"):
        await group.seal()


async def test_a_member_that_is_retried_twice_is_counted_once(shop: Shop, working: Working) -> None:
    shop.failing = {"a", "b"}
    async with working(shop.app):
        async with shop.app.group(on_success=shop.two.draft("success")) as group:
            receipts = await group.enqueue_many(shop.one, ["a", "b"])
        await group.wait("10s")
        shop.failing.discard("a")
        new_id = await shop.app.dead_letters.retry_as_new("first", receipts[0].id)
        await shop.first.handle(new_id).result(timeout="60s")
        await shop.first.handle(new_id).rerun()
        await eventually(lambda: shop.done == ["a", "a"])

        async def is_counted() -> bool:
            return (await group.view()).completed == 1

        await eventually(is_counted)
        view = await group.view()
    assert (view.completed, view.dead) == (1, 1)
    assert "success" not in shop.groups


async def test_a_wide_failure_is_taken_back_in_order(shop: Shop, working: Working) -> None:
    """Every child completes long before the last of them was told that it may run."""
    shop.failing = {"root"}
    plan = shop.app.flow("wide")
    root = plan.add(shop.one.draft("root"), name="root")
    middle = [plan.add(shop.one.draft(str(n)), after=[root]) for n in range(450)]
    tails = [plan.add(shop.two.draft(f"tail{n}"), after=middle[n::2]) for n in range(2)]
    plan.add(shop.two.draft("end"), name="end", after=tails)
    async with working(shop.app):
        flow = await plan.start()
        assert (await flow.wait("20s")).counts == {"dead": 1, "skipped": 453}
        shop.failing.clear()
        await (await flow.node("root")).rerun()
        await eventually(lambda: "end" in shop.done)
        view = await flow.wait("10s")
    assert view.counts == {"completed": 454}
    assert len(shop.done) == 454


async def test_one_bad_pending_send_stops_neither_others_nor_the_worker(
    shop: Shop, working: Working
) -> None:
    bad = await shop.start_only(shop.app.chain(shop.one.draft("a")))
    engine = (await shop.app.runtime()).engine
    await engine.command("HSET", "first", f"flow:{bad.id.partition('/')[2]}", "j:1", b"\xc1")
    async with working(shop.app):
        good = await shop.app.chain(shop.one.draft("b"), shop.two.draft("c")).start()
        assert (await good.wait("10s")).state == "completed"
        view = await bad.wait("10s")
    assert view.state == "failed"
    assert b"cannot be read" in (view.nodes[0].outcome or b"")


async def test_a_queue_that_cannot_be_reached_keeps_back_only_its_own(
    shop: Shop, working: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = (await shop.app.runtime()).client
    enqueue = client.enqueue

    async def fail_for_second(queue: str, *args: Any) -> Any:
        if queue == "second":
            raise StoreUnavailable("its node is down")
        return await enqueue(queue, *args)

    async with working(shop.app):
        with monkeypatch.context() as patch:
            patch.setattr(client, "enqueue", fail_for_second)
            plan = shop.app.flow()
            plan.add(shop.one.draft("a"))
            plan.add(shop.two.draft("b"))
            flow = await plan.start()
            other = await shop.app.chain(shop.one.draft("c"), shop.one.draft("d")).start()
            assert (await other.wait("10s")).state == "completed"
        assert (await flow.wait("15s")).state == "completed"


class Stamp(Middleware):
    """Adds a header to whatever is enqueued."""

    async def enqueue(
        self, queue: str, spec: Spec, call_next: Callable[[str, Spec], Awaitable[Any]]
    ) -> Any:
        spec.headers = {**spec.headers, "stamp": queue}
        return await call_next(queue, spec)


async def test_middleware_sees_the_jobs_of_flows(server: Server, working: Working) -> None:
    stamped = Faena("flows", server.url, middleware=[Stamp()])
    seen: list[str] = []
    queue = stamped.queue("stamped")

    @queue.task
    async def note(job: Job) -> None:
        seen.append(job.headers["stamp"])

    async with stamped, working(stamped):
        flow = await stamped.chain(note.draft()).start()
        await flow.wait("10s")
        async with stamped.group(on_complete=note.draft()) as group:
            await group.enqueue(note)
        await eventually(lambda: len(seen) == 3)
    assert seen == ["stamped"] * 3


async def test_mistakes_are_refused_with_what_to_do(shop: Shop) -> None:
    plan, other = shop.app.flow(), shop.app.flow()
    given: Any = shop.one
    with pytest.raises(ConfigError, match=r"such as task.draft\(payload\)"):
        plan.add(given)
    with pytest.raises(ConfigError, match=r"such as task.draft\(payload\)"):
        shop.app.group(on_complete=given)
    stranger = other.add(shop.one.draft("a"))
    plan.add(shop.one.draft("a"))
    with pytest.raises(ConfigError, match="after must be nodes of this flow, got"):
        plan.add(shop.one.draft("b"), after=[stranger])
    with pytest.raises(ConfigError, match="durability must not be given"):
        plan.add(shop.one.draft("b", durability="fsynced"))
    with pytest.raises(ConfigError, match="without colon, slash and dot"):
        shop.app.flow(id="a.b")
    nothing: Any = None
    assert plan.add(shop.one.draft("c"), after=nothing).after == {}
