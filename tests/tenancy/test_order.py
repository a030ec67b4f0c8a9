"""How a claim is decided: what docs/tenants.md says of order, turns and priorities, done."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from typing import Any

import pytest

from faena import Faena, Job, Order, RateLimited, Retry, Snooze
from faena.errors import ConfigError
from faena.testing import Harness
from tests._support.eventually import eventually
from tests._support.working import Working


def results(ran: Any) -> list[Any]:
    return [one.result for one in ran if one.ending == "completed"]


# -- order --------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [Order.TENANT, Order.KEY, Order.QUEUE])
async def test_jobs_of_an_order_start_as_they_came_and_never_overlap(
    app: Faena, working: Working, order: Order
) -> None:
    retry = Retry.fixed("10ms", attempts=5, floor="0s", jitter=0)
    queue = app.queue("mail", order=order, concurrency=10, retry=retry)
    running, seen = Counter[str](), defaultdict[str, list[int]](list)

    @queue.task
    async def send(number: int, job: Job) -> None:
        groups = {Order.TENANT: f"{job.tenant}", Order.KEY: f"{job.tenant}/{job.key}"}
        group = groups.get(order, "all")
        running[group] += 1
        assert running[group] == 1
        try:
            await asyncio.sleep(0.001)
            if number % 5 == 0 and job.attempt < 3:
                raise RuntimeError("as planned")
        finally:
            running[group] -= 1
        seen[group].append(number)

    receipts = [
        await send.enqueue(number, tenant=f"t{number % 3}", key=f"k{number % 2}")
        for number in range(36)
    ]
    async with working(), working():
        for receipt in receipts:
            await receipt.handle.result("60s")
    assert sum(map(len, seen.values())) == 36
    assert len(seen) == {Order.TENANT: 3, Order.KEY: 6, Order.QUEUE: 1}[order]
    assert all(numbers == sorted(numbers) for numbers in seen.values())


async def test_an_order_asks_for_what_it_orders_by(app: Faena, h: Harness) -> None:
    @app.queue("tenants", order="tenant").task
    async def one(job: Job) -> None: ...

    @app.queue("keys", order="key").task
    async def other(job: Job) -> None: ...

    with pytest.raises(ConfigError, match="order of each tenant: its jobs must have a tenant"):
        await one.enqueue()
    with pytest.raises(
        ConfigError, match="order of each key of a tenant: its jobs must have a key"
    ):
        await other.enqueue(tenant="acme")


@pytest.mark.parametrize(
    ("on_failure", "expected"),
    [
        ("block", [[], ["a", "b", "c", "d", "e"]]),
        ("pass", [["b", "c"], ["d", "a", "e"]]),
    ],
)
@pytest.mark.parametrize("reason", [RuntimeError("boom"), Snooze("1m")], ids=["fail", "snooze"])
async def test_those_behind_a_failed_job_wait_or_pass(
    app: Faena, h: Harness, on_failure: str, expected: list[list[str]], reason: Exception
) -> None:
    retry = Retry.fixed("1m", attempts=3, jitter=0)
    queue = app.queue("mail", order=Order.TENANT, on_failure=on_failure, retry=retry)
    bad = {"a"}

    @queue.task
    async def send(word: str) -> str:
        if word in bad:
            bad.discard(word)
            raise reason
        return word

    for word in "abc":
        await send.enqueue(word, tenant="acme")
    first = results(await h.drain())
    h.clock.advance("2m")
    await queue.pause()
    for word in "de":  # d has the turn before a is back, and keeps it
        await send.enqueue(word, tenant="acme")
    await h.drain()
    await queue.resume()
    assert [first, results(await h.drain())] == expected


async def test_a_provider_s_wait_keeps_the_turn_even_where_failures_pass(
    app: Faena, h: Harness
) -> None:
    queue, limited = app.queue("mail", order=Order.TENANT, on_failure="pass"), {"a"}

    @queue.task
    async def send(word: str) -> str:
        if word in limited:
            limited.discard(word)
            raise RateLimited("1m", scope="tenant")
        return word

    for word in "abc":
        await send.enqueue(word, tenant="acme")
    assert results(await h.drain()) == []
    h.clock.advance("10m")
    assert results(await h.drain()) == ["a", "b", "c"]


async def test_a_delayed_job_takes_its_place_when_it_is_due(app: Faena, h: Harness) -> None:
    queue = app.queue("mail", order=Order.TENANT)

    @queue.task
    async def send(word: str) -> str:
        return word

    await send.enqueue("reminder", tenant="acme", delay="10m")
    await send.enqueue("today", tenant="acme")
    assert results(await h.drain()) == ["today"]
    await queue.tenant("acme").hold("so that they wait")
    await send.enqueue("before", tenant="acme")
    h.clock.advance("10m")
    await h.drain()
    h.clock.advance("1m")
    await send.enqueue("after", tenant="acme")
    await queue.tenant("acme").release()
    assert results(await h.drain()) == ["before", "reminder", "after"]


async def test_priorities_mean_nothing_in_an_order(app: Faena, h: Harness) -> None:
    @app.queue("mail", order=Order.TENANT).task
    async def send(word: str) -> str:
        return word

    await send.enqueue("first", tenant="acme", priority="bulk")
    await send.enqueue("second", tenant="acme", priority="critical")
    assert results(await h.drain()) == ["first", "second"]


# -- turns --------------------------------------------------------------------------------------


async def test_one_job_beside_a_flood_starts_at_its_next_turn(app: Faena, working: Working) -> None:
    """Nobody had to ask for it; those without a tenant have their turns too."""
    queue, started = app.queue("mail", concurrency=2), list[str]()

    @queue.task
    async def send(tenant: str) -> None:
        started.append(tenant)

    await queue.pause()
    await send.enqueue_many(["flood"] * 300, tenant="flood")
    await send.enqueue_many(["small"] * 3, tenant="small")
    await send.enqueue_many(["nobody"] * 3)
    await queue.resume()
    async with working():
        await eventually(lambda: len(started) == 306)
    first = Counter(started[:20])
    assert (first["small"], first["nobody"]) == (3, 3)


async def test_a_priority_is_of_one_tenant_and_no_other(app: Faena, working: Working) -> None:
    queue, started = app.queue("mail", fair=True, concurrency=1), list[str]()

    @queue.task
    async def send(word: str) -> None:
        started.append(word)

    await queue.pause()
    for number in range(20):
        await send.enqueue(f"zen {number}", tenant="zen", priority="critical")
    await send.enqueue("acme low", tenant="acme", priority="low")
    await send.enqueue("acme critical", tenant="acme", priority="critical")
    await queue.resume()
    async with working():
        await eventually(lambda: len(started) == 22)
    assert started.index("acme critical") < started.index("acme low")
    assert started.index("acme low") < 10


async def test_an_idle_tenant_saves_nothing_up(app: Faena, working: Working) -> None:
    queue, started = app.queue("mail", fair=True, concurrency=1), list[str]()

    @queue.task
    async def send(tenant: str) -> None:
        started.append(tenant)

    async with working():
        for receipt in await send.enqueue_many(["busy"] * 50, tenant="busy"):
            await receipt.handle.result("60s")
        await queue.pause()
        for tenant in ("idle", "busy"):
            await send.enqueue_many([tenant] * 20, tenant=tenant)
        await queue.resume()
        await eventually(lambda: len(started) == 90)
    assert abs(Counter(started[50:70])["idle"] - 10) <= 4


async def test_tenants_that_are_labels_do_not_take_turns(app: Faena, h: Harness) -> None:
    queue = app.queue("mail", fair=False)

    @queue.task
    async def send(tenant: str) -> str:
        return tenant

    await send.enqueue_many(["flood"] * 5, tenant="flood")
    await send.enqueue("small", tenant="small")
    assert results(await h.drain()) == ["flood"] * 5 + ["small"]


async def test_a_tenant_of_any_queue_may_be_held_and_live_on_its_own(
    app: Faena, h: Harness
) -> None:
    queue = app.queue("mail")

    @queue.task
    async def send(number: int, job: Job) -> str | None:
        return job.tenant

    await queue.tenant("acme").hold("invoice unpaid")
    for tenant in ("acme", "zen", None):
        await send.enqueue_many(range(2), **({"tenant": tenant} if tenant else {}))
    assert {view.tenant for view in await queue.tenants()} >= {"acme", "zen"}
    assert Counter(results(await h.drain())) == {"zen": 2, None: 2}
    await queue.tenant("acme").release()
    assert (await queue.tenant("zen").dedicate()).is_dedicated
    await send.enqueue_many(range(2), tenant="zen")
    await send.enqueue(1)
    assert (await queue.shards()).dedicated == ("zen",)
    assert Counter(results(await h.drain())) == {"acme": 2, "zen": 2, None: 1}
