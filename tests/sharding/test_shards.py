"""Queues that live in several shards: shards, tenants with a queue of their own, and moving."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from faena import Faena, Job, Limit, Order, Queue, Retain, Retry, Task, Unique
from faena.engine.scripts import Turn
from faena.errors import ConfigError, InvalidTransition, JobConflict
from faena.inspection.audit import audit
from faena.sharding.routing_table import index_of
from tests._support.eventually import eventually
from tests._support.working import Working

TENANTS = [f"t{number}" for number in range(12)]
KEEP = Retain(completed_count=100_000)


async def sound(app: Faena, queue: str) -> None:
    """No shard of the queue breaks a promise."""
    runtime = await app.runtime()
    for shard in await runtime.routers.of(queue).names():
        assert await audit(runtime.engine, shard) == []


async def listed(queue: Any) -> list[str]:
    """The ids of its ready jobs, page by page."""
    pages = [await queue.jobs("ready", limit=20)]
    while pages[-1].cursor:
        pages.append(await queue.jobs("ready", limit=20, cursor=pages[-1].cursor))
    return [job.id for page in pages for job in page.jobs]


def spread(shards: int) -> int:
    return len({index_of(f"@{tenant}", shards) for tenant in TENANTS})


# -- shards ---------------------------------------------------------------------------------------


async def test_what_holds_one_shard_is_told_of_the_queue(app: Faena) -> None:
    queue = app.queue("mail", fair=True)
    await queue.reshard(2)
    engine = (await app.runtime()).engine
    await engine.hold("mail/1", "rate_limited", 3_600_000_000, "handler")
    assert [hold.reason for hold in (await queue.overview()).holds] == ["rate_limited"]


async def test_a_queue_of_shards_is_one_queue(app: Faena, working: Working) -> None:
    queue = app.queue("mail", shards=4, concurrency=8)
    seen: list[str] = []

    @queue.task
    async def send(number: int, job: Job) -> int:
        assert job.queue == "mail"
        seen.append(f"{job.tenant}/{number}")
        return number

    receipts = [
        await send.enqueue(number, tenant=tenant, delay="1h" if number == 4 else "0s")
        for number in range(5)
        for tenant in TENANTS
    ]
    assert spread(4) > 2
    assert (await queue.shards()).jobs.keys() == {"mail", "mail/1", "mail/2", "mail/3"}
    assert (await queue.counts())["ready"] == 48
    assert (await queue.counts())["delayed"] == 12
    assert await listed(queue) == [one.id for one in receipts[:48]]

    assert await receipts[0].handle.cancel() == "cancelled"
    await receipts[50].handle.promote()
    await receipts[51].handle.change(delay="2h")
    assert (await receipts[49].handle.explain()).gates[0].name == "delayed"
    assert {view.tenant for view in await queue.tenants()} == set(TENANTS)
    async with working(), working():
        assert await receipts[50].handle.result("60s") == 4
        for receipt in receipts[1:48]:
            await receipt.handle.result("60s")
    assert Counter(seen).most_common(1)[0][1] == 1
    minutes = await queue.shares(minutes=10)
    assert sum(sum(minute.given.values()) for minute in minutes) == pytest.approx(48)
    await sound(app, "mail")
    assert await queue.drain() == 11
    assert await queue.clean("completed") == 48


async def test_a_paused_queue_is_paused_in_every_shard_and_in_new_ones(
    app: Faena, working: Working
) -> None:
    queue = app.queue("mail", shards=2, limits=[Limit("100/s")])

    @queue.task
    async def send(number: int) -> int:
        return number

    assert await queue.pause(reason="repairs")
    await queue.configure(max_running=50)
    await queue.reshard(3)
    overview = await queue.overview()
    assert [hold.reason for hold in overview.holds] == ["repairs"]
    engine = (await app.runtime()).engine
    for shard in (await queue.shards()).jobs:
        seen = await engine.overview(shard)
        assert seen.settings["max_running"] == "50"
        assert seen.settings["edited"] == "max_running"
        assert seen.settings["shards"] == "3"
        assert seen.holds
    receipts = [await send.enqueue(1, tenant=tenant) for tenant in TENANTS]
    async with working():
        await asyncio.sleep(0.2)
        assert (await queue.counts())["ready"] == len(TENANTS)
        assert await queue.resume(reason="repairs")
        for receipt in receipts:
            assert await receipt.handle.result("60s") == 1


async def test_limits_of_the_queue_are_divided_between_its_shards(
    app: Faena, working: Working
) -> None:
    queue = app.queue("mail", shards=3, limits=[Limit("7/h")], concurrency=20)

    @queue.task
    async def send(number: int) -> int:
        return number

    for tenant in TENANTS:
        await send.enqueue_many(range(5), tenant=tenant)
    async with working(), working():
        await eventually(lambda: has_completed(queue, 7))
        await asyncio.sleep(0.3)
    assert (await queue.counts())["completed"] == 7


async def test_a_limit_holds_while_shards_are_added_and_retired(
    app: Faena, working: Working
) -> None:
    queue = app.queue("mail", fair=True, limits=[Limit("10/h")], concurrency=20)

    @queue.task
    async def send(number: int) -> int:
        return number

    await send.enqueue_many(range(8), tenant="first")
    async with working():
        await eventually(lambda: has_completed(queue, 8))
    await queue.reshard(3)
    await queue.reshard(2)
    await queue.reshard(5)
    for tenant in TENANTS:
        await send.enqueue_many(range(5), tenant=tenant)
    async with working(), working():
        await asyncio.sleep(0.5)
    # what is left of the limit is some shard's, which may have no job to use it for
    assert 8 <= (await queue.counts())["completed"] <= 10


async def has_completed(queue: Any, number: int) -> bool:
    return bool((await queue.counts())["completed"] >= number)


@asynccontextmanager
async def producing(task: Any) -> AsyncGenerator[list[Any]]:
    """Jobs of every tenant in order, through the block and forty of each at least."""
    stop = asyncio.Event()
    receipts: list[Any] = []

    async def produce(tenant: str) -> None:
        number = 0
        while not stop.is_set() or number < 40:
            receipts.append(await task.enqueue(number, tenant=tenant, key="k"))
            number += 1
            await asyncio.sleep(0.005)

    work = [asyncio.create_task(produce(tenant)) for tenant in TENANTS]
    yield receipts
    stop.set()
    await asyncio.gather(*work)


@pytest.mark.parametrize("order", [Order.NONE, Order.TENANT, Order.KEY])
async def test_a_queue_grows_while_it_runs_and_nothing_is_lost_or_out_of_order(
    app: Faena, working: Working, order: Order
) -> None:
    retry = Retry.fixed("20ms", attempts=5, floor="0s", jitter=0)
    queue = app.queue("mail", order=order, fair=True, concurrency=6, retry=retry, retain=KEEP)
    seen = defaultdict[str, list[int]](list)
    running = Counter[str]()

    @queue.task
    async def send(number: int, job: Job) -> int:
        assert job.tenant
        running[job.tenant] += 1
        assert order is Order.NONE or running[job.tenant] == 1
        try:
            await asyncio.sleep(0.002)
            if number % 7 == 0 and job.attempt == 1:
                raise RuntimeError("as planned")
        finally:
            running[job.tenant] -= 1
        seen[job.tenant].append(number)
        return number

    async with working(), working():
        async with producing(send) as receipts:
            await asyncio.sleep(0.2)
            assert not (await queue.reshard(3)).is_moving
            await asyncio.sleep(0.1)
            assert not (await queue.reshard(5)).is_moving
        for receipt in receipts:
            await receipt.handle.result("60s")
    assert sum(map(len, seen.values())) == len(receipts)
    if order is not Order.NONE:
        for numbers in seen.values():
            assert numbers == sorted(numbers)
    assert (await queue.shards()).shards == 5
    await sound(app, "mail")


async def test_a_queue_that_was_obliterated_grows_again(app: Faena) -> None:
    queue = app.queue("mail", shards=2)

    @queue.task
    async def send(number: int) -> int:
        return number

    await send.enqueue(1, tenant="acme")
    await queue.obliterate(force=True)
    assert (await queue.shards()).shards == 1  # who only looks begins no change
    await send.enqueue(2, tenant="acme")
    assert (await queue.shards()).shards == 2


def with_three_shards(newer: Faena) -> tuple[Queue, Task[int, int]]:
    """The queue `mail` as newer code declares it, and its task."""
    queue = newer.queue("mail", shards=3)

    @queue.task
    async def send(number: int) -> int:
        return number

    return queue, send


async def test_code_that_asks_for_more_shards_grows_the_queue(
    app: Faena, valkey: Any, namespace: str
) -> None:
    queue = app.queue("mail", fair=True)

    @queue.task
    async def send(number: int) -> int:
        return number

    for tenant in TENANTS:
        await send.enqueue_many(range(3), tenant=tenant)
    newer = Faena("shop", valkey.url, namespace=namespace)
    later, send_later = with_three_shards(newer)
    await send_later.enqueue(1, tenant="new")
    assert (await later.shards()).shards == 3
    assert (await queue.counts())["ready"] == 37
    await send.enqueue(2, tenant="new")  # the older program learns of it by itself
    assert (await queue.counts())["ready"] == 38
    await newer.close()


async def test_code_gets_no_shards_that_bounds_of_operators_cannot_be_divided_between(
    app: Faena, valkey: Any, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    queue = app.queue("mail", fair=True)

    @queue.task
    async def send(number: int) -> int:
        return number

    await send.enqueue(1, tenant="acme")
    await queue.configure(max_running=2)
    with pytest.raises(ConfigError, match="max_running must be at least 3, one for each shard"):
        await queue.reshard(3)
    newer = Faena("shop", valkey.url, namespace=namespace)
    later, send_later = with_three_shards(newer)
    await send_later.enqueue(1, tenant="acme")
    assert (await later.shards()).shards == 1
    assert "keeps 1 shards: max_running must be at least 3" in caplog.text
    await newer.close()


async def test_shards_are_retired_only_when_no_job_waits_there(app: Faena) -> None:
    queue = app.queue("mail", shards=4)

    @queue.task
    async def send(number: int) -> int:
        return number

    await send.enqueue_many([send.draft(1, tenant=tenant) for tenant in TENANTS])
    await eventually(lambda: is_still(queue))
    before = await queue.shards()
    with pytest.raises(InvalidTransition, match="must keep its 4 shards while those"):
        await queue.reshard(2)
    assert await queue.shards() == before
    await queue.drain()
    assert (await queue.reshard(2)).shards == 2
    with pytest.raises(ConfigError, match="shards must be"):
        await queue.reshard(0)


async def test_a_server_that_lost_everything_is_told_where_the_queue_lived(
    app: Faena, valkey: Any, namespace: str, working: Working
) -> None:
    queue = app.queue("mail", fair=True)

    @queue.task
    async def send(number: int) -> int:
        return number

    await queue.reshard(3)
    await queue.tenant("t1").dedicate()
    with valkey.client() as client:
        for key in client.scan_iter(match=f"{namespace}:*"):
            client.delete(key)
    async with working():
        receipts = [await send.enqueue(1, tenant=tenant) for tenant in TENANTS]
        for receipt in receipts:
            assert await receipt.handle.result("60s") == 1
    view = await queue.shards()
    assert (view.shards, view.dedicated) == (3, ("t1",))


async def test_code_whose_bounds_cannot_be_divided_is_told_so(
    app: Faena, valkey: Any, namespace: str
) -> None:
    queue = app.queue("mail", shards=4)

    @queue.task
    async def send(number: int) -> int:
        return number

    await send.enqueue(1, tenant="acme")
    with pytest.raises(ConfigError, match="must be at least 4, one for each shard, got 2"):
        await queue.configure(max_running=2)
    newer = Faena("shop", valkey.url, namespace=namespace)
    later = newer.queue("mail", fair=True, max_running=3)

    @later.task(name="send")
    async def send_later(number: int) -> int:
        return number

    with pytest.raises(ConfigError, match="with at least one for each shard, got '3'"):
        await send_later.enqueue(1, tenant="acme")
    await newer.close()
    assert "max_running" not in (await queue.overview()).settings


def test_what_cannot_be_divided_is_refused(app: Faena) -> None:
    with pytest.raises(ConfigError, match="must be 1 with order 'queue'"):
        app.queue("a", shards=2, order="queue")
    with pytest.raises(ConfigError, match="limit 2/s must be at least 3, one for each shard"):
        app.queue("b", shards=3, limits=[Limit("2/s")])
    with pytest.raises(ConfigError, match="max_running must be at least 3"):
        app.queue("c", shards=3, max_running=2)
    with pytest.raises(ConfigError, match="shards needs lanes"):
        app.queue("d", shards=3, fair=False)
    with pytest.raises(ConfigError, match="shards must be"):
        app.queue("e", shards=65)


# -- tenants with a queue of their own ------------------------------------------------------------


async def test_a_dedicated_tenant_takes_its_jobs_along_and_brings_them_back(
    app: Faena, working: Working
) -> None:
    queue = app.queue("mail", order="tenant", tenant_limits=[Limit("50/s")])
    seen: list[int] = []

    @queue.task
    async def send(number: int, job: Job) -> int:
        if job.tenant == "acme":
            seen.append(number)
        return number

    acme = queue.tenant("acme")
    await acme.configure(limits=[Limit("1000/s")], weight=3, by="ops")
    first = await send.enqueue_many(range(120), tenant="acme")
    await send.enqueue_many(range(3), tenant="other")
    late = await send.enqueue(900, tenant="acme", delay="1h")
    view = await acme.dedicate(by="ops")
    assert (view.is_dedicated, view.is_moving, view.live, view.weight) == (True, False, 121, 3)
    shards = await queue.shards()
    assert (shards.dedicated, shards.jobs) == (("acme",), {"mail": 3, "mail/@acme": 121})
    more = await send.enqueue_many(range(120, 130), tenant="acme")
    await sound(app, "mail")
    assert await late.handle.state() == "delayed"
    async with working():
        for receipt in [*first, *more]:
            await receipt.handle.result("60s")
    assert seen == list(range(130))
    view = await acme.rejoin(by="ops")
    assert (view.is_dedicated, view.live, view.weight) == (False, 1, 3)
    assert (await queue.shards()).jobs == {"mail": 1}
    assert await first[0].handle.state() == "completed"
    await late.handle.promote()
    async with working():
        assert await late.handle.result("60s") == 900
    await sound(app, "mail")


async def test_ids_and_claims_count_while_a_tenant_moves_and_after(app: Faena) -> None:
    queue = app.queue("mail", fair=True)
    gate = asyncio.Event()

    @queue.task
    async def send(number: int) -> int:
        if number == 1:
            await gate.wait()
        return number

    runs = await send.enqueue(1, tenant="acme", id="runs")
    worker = await app.worker()
    running = asyncio.create_task(worker.run())
    await eventually(lambda: has_state(runs.handle, "running"))
    claim = Unique.while_live("the-one")
    await queue.pause()
    waits = await send.enqueue(2, tenant="acme", unique=claim)
    view = await queue.tenant("acme").dedicate(wait="300ms")
    assert view.is_moving
    again = await send.enqueue(1, tenant="acme", id="runs")
    assert (again.status, again.state) == ("duplicate", "running")
    with pytest.raises(JobConflict):
        await send.enqueue(7, tenant="acme", id="runs")
    assert (await send.enqueue(3, tenant="acme", unique=claim)).id == waits.id
    gate.set()
    await queue.resume()
    assert await runs.handle.result("60s") == 1
    assert await waits.handle.result("60s") == 2
    await eventually(lambda: is_still(queue))
    assert (await send.enqueue(1, tenant="acme", id="runs")).state == "completed"
    assert (await queue.tenant("acme").view()).is_moving is False
    worker.stop()
    await running
    await sound(app, "mail")


async def test_shares_tell_of_a_shard_that_was_retired(app: Faena) -> None:
    queue = app.queue("mail", fair=True)

    @queue.task
    async def send(number: int) -> None: ...

    await queue.tenant("acme").dedicate()
    for tenant in ("acme", "bolt"):
        await send.enqueue_many(range(5), tenant=tenant)
    await app.run_worker(until_empty=True)
    await queue.tenant("acme").rejoin()
    before, now = await queue.shares()
    assert Counter(before.given) + Counter(now.given) == {"acme": 5, "bolt": 5}
    await queue.tenant("acme").dedicate()  # its shard is there again, and counted once
    before, now = await queue.shares()
    assert Counter(before.given) + Counter(now.given) == {"acme": 5, "bolt": 5}


async def has_state(handle: Any, state: str) -> bool:
    return bool(await handle.state() == state)


async def is_still(queue: Any) -> bool:
    return not (await queue.shards()).is_moving


async def test_a_whole_order_has_one_shard(app: Faena) -> None:
    queue = app.queue("mail", order="queue", fair=True)
    with pytest.raises(ConfigError, match="has order 'queue'"):
        await queue.tenant("acme").dedicate()
    with pytest.raises(ConfigError, match="must be 1 with order 'queue'"):
        await queue.reshard(2)


async def test_claims_that_a_tenant_left_behind_do_not_follow_it(app: Faena) -> None:
    """A limit was lifted while it moved: what it claimed before stays where it was."""
    queue = app.queue("mail", fair=True)

    @queue.task
    async def send(number: int) -> None: ...

    name = next(f"t{n}" for n in range(99) if index_of(f"@t{n}", 2) == index_of(f"@t{n}", 3) == 1)
    await queue.configure(tenant_limits=[Limit("2/h")])
    await send.enqueue(0, tenant=name)
    await app.run_worker(until_empty=True)
    await queue.configure(tenant_limits=[])
    await queue.reshard(2)
    await queue.configure(tenant_limits=[Limit("2/h")])
    engine = (await app.runtime()).engine
    await send.enqueue_many(range(4), tenant=name)
    assert len((await engine.exchange("mail/1", "w", "w", Turn("call1", 4))).claimed) == 2
    await queue.reshard(3)
    assert (await engine.exchange("mail/1", "w", "w", Turn("call2", 4))).claimed == []
