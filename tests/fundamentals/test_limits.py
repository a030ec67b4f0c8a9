"""How much of a queue may run, and how much of it may wait."""

from __future__ import annotations

import asyncio

import pytest

from faena import Backpressure, Faena, Job, Limit
from faena.errors import ConfigError, Overloaded
from faena.testing import Harness
from tests._support.working import Working


async def drained_every(pause: str, times: int, h: Harness) -> list[int]:
    """How many jobs may run at each of some instants that lie so far apart."""
    found: list[int] = []
    for _ in range(times):
        found.append(len(await h.drain()))
        h.clock.advance(pause)
    return found


async def test_a_limit_holds_in_every_window_of_its_length(app: Faena, h: Harness) -> None:
    @app.queue("calls", limits=[Limit("3/min")]).task
    async def call(number: int) -> None: ...

    await call.enqueue_many(range(10))
    assert await drained_every("30s", 7, h) == [3, 0, 3, 0, 3, 0, 1]


async def test_limits_stack(app: Faena, h: Harness) -> None:
    @app.queue("calls", limits=[Limit("2/s"), Limit("5/min")]).task
    async def call(number: int) -> None: ...

    await call.enqueue_many(range(10))
    assert await drained_every("1s", 4, h) == [2, 2, 1, 0]


async def test_each_key_has_a_limit_of_its_own_and_waits_alone(app: Faena, h: Harness) -> None:
    @app.queue("chat", key_limits=[Limit("1/s")]).task
    async def send(text: str) -> None: ...

    for number in range(3):
        await send.enqueue(f"a{number}", tenant="acme", key="chat-a")
    await send.enqueue("b0", tenant="acme", key="chat-b")
    await send.enqueue("news", tenant="acme")  # no key, no limit
    last = await send.enqueue("a3", tenant="acme", key="chat-a")
    per_second = []
    for _ in range(4):
        per_second.append(len(await h.drain()))
        why = str(await last.handle.explain())
        h.clock.advance("1s")
        if len(per_second) == 1:
            assert "its key's limit of 1/s is used up, for another 1s" in why
    assert per_second == [3, 1, 1, 1]


async def test_limits_of_keys_are_changed_while_the_queue_runs(app: Faena, h: Harness) -> None:
    @app.queue("chat", key_limits=[Limit("1/h")]).task
    async def send(text: str) -> None: ...

    for number in range(5):
        await send.enqueue(str(number), tenant="acme", key="chat-a")
    assert len(await h.drain()) == 1
    settings = await app.queues["chat"].configure(key_limits=[Limit("3/h")])
    assert settings.key_limits == (Limit("3/h"),)
    assert len(await h.drain()) == 2
    await app.queues["chat"].configure(key_limits=None)
    assert len(await h.drain()) == 2


async def test_tenants_whose_keys_have_limits_do_not_move(app: Faena, h: Harness) -> None:
    queue = app.queue("chat", key_limits=[Limit("1/s")])

    @queue.task
    async def send(text: str) -> None: ...

    await send.enqueue("a", tenant="acme", key="chat-a")
    with pytest.raises(
        ConfigError, match="tenants of queue chat cannot move while it has key_limits"
    ):
        await queue.tenant("acme").dedicate()
    with pytest.raises(ConfigError, match="shards must be 1 with key_limits, got 2"):
        await queue.reshard(2)
    assert len(await h.drain()) == 1


async def test_max_running_bounds_all_workers_together(app: Faena, working: Working) -> None:
    now, peak = 0, 0

    @app.queue("calls", max_running=2, concurrency=10).task
    async def call(number: int) -> None:
        nonlocal now, peak
        now += 1
        peak = max(peak, now)
        await asyncio.sleep(0.005)
        now -= 1

    receipts = await call.enqueue_many(range(12))
    async with working(), working():
        for receipt in receipts:
            await receipt.handle.result(timeout="60s")
    assert peak == 2


async def test_a_full_queue_slows_its_producers_and_then_refuses_them(
    app: Faena, h: Harness
) -> None:
    @app.queue("calls", backpressure=Backpressure(soft=2, hard=4, max_delay="10s")).task
    async def call(number: int) -> None: ...

    waits = [(await call.enqueue(number)).retry_after for number in range(4)]
    assert waits[:2] == [0, 0]
    assert 0 < waits[3] <= 10
    with pytest.raises(Overloaded, match="queue calls is full: try again in") as refused:
        await call.enqueue(5)
    assert refused.value.retry_after > 0
    many = await call.enqueue_many([6, 7])
    assert [receipt.status for receipt in many] == ["overloaded", "overloaded"]
    await h.drain()
    assert (await call.enqueue(8)).status == "created"


async def test_a_limit_may_count_what_jobs_cost(app: Faena, h: Harness) -> None:
    queue = app.queue("llm", limits=[Limit("1000/min", cost="tokens")])

    @queue.task(cost={"tokens": 400})
    async def ask(used: int, job: Job) -> int:
        job.spend(tokens=used)
        return used

    await ask.enqueue(100)
    await ask.enqueue(900, cost={"tokens": 600})
    await ask.enqueue(50, cost={"tokens": 600})
    assert {ran.result for ran in await h.drain()} == {100, 900}
    waiting = (await queue.jobs("ready")).jobs[0]
    why = await queue.handle(waiting.id).explain()
    assert "limit of 1000/min of tokens has no room" in str(why)
    assert [gate.detail for gate in why.gates if gate.name == "limit"] == ["1000/min of tokens"]
    h.clock.advance("1m")
    assert [ran.result for ran in await h.drain()] == [50]


async def test_jobs_of_a_schedule_cost_what_their_task_says(app: Faena, h: Harness) -> None:
    @app.queue("llm", limits=[Limit("1000/h", cost="tokens")]).task(cost={"tokens": 500})
    async def ask() -> None: ...

    app.schedule("often", ask, every="1m", overlap="allow")
    assert (await h.drain(through="10m")).counts == {"completed": 2}
    await app.schedules.run("often")
    assert (await h.drain(through="10m")).counts == {}
