"""Queues in several shards: what is held in all of them, and changes that must wait."""

from __future__ import annotations

import asyncio

import pytest

from faena import Faena, Handle, RateLimited
from faena.errors import InvalidTransition
from faena.runtime.connections import Runtime
from faena.sharding.routing_table import index_of
from tests._support.eventually import eventually
from tests._support.working import Working


async def test_a_provider_that_asks_to_wait_is_heard_in_every_shard(
    app: Faena, working: Working
) -> None:
    queue = app.queue("mail", shards=2, concurrency=8)
    is_refused = True

    @queue.task
    async def send(number: int) -> int:
        if is_refused:
            raise RateLimited("1h")
        return number

    await queue.tenant("own").dedicate()
    assert index_of("@t0", 2) != index_of("@t2", 2)
    async with working():
        await send.enqueue(0, tenant="t0")
        runtime = await app.runtime()
        for shard in ("mail", "mail/1", "mail/@own"):
            await eventually(lambda shard=shard: is_held(runtime, shard))
        is_refused = False
        receipts = [await send.enqueue(1, tenant=tenant) for tenant in ("t0", "t2", "own")]
        await asyncio.sleep(0.2)
        assert (await queue.counts())["completed"] == 0
        assert await queue.resume(reason="rate_limited")
        for receipt in receipts:
            assert await receipt.handle.result("60s") == 1


async def is_held(runtime: Runtime, shard: str) -> bool:
    return "rate_limited" in {hold.reason for hold in (await runtime.engine.overview(shard)).holds}


async def test_a_change_waits_for_another_no_longer_than_it_is_told_to(
    app: Faena, working: Working
) -> None:
    queue = app.queue("mail", order="tenant", concurrency=4)
    gate = asyncio.Event()

    @queue.task
    async def send(number: int) -> int:
        await gate.wait()
        return number

    receipt = await send.enqueue(1, tenant="acme")
    acme = queue.tenant("acme")
    async with working():
        await eventually(lambda: is_running(receipt.handle))
        assert (await acme.dedicate(wait="50ms")).is_moving
        async with asyncio.timeout(60):
            with pytest.raises(InvalidTransition, match=r"acme\) did not end in time; nothing was"):
                await queue.reshard(2, wait="50ms")
            with pytest.raises(InvalidTransition, match="own shard for tenant acme"):
                await queue.tenant("zen").dedicate(wait="50ms")
            assert (await acme.dedicate(wait="50ms")).is_moving  # it is what is under way
        assert (await queue.shards()).change == "own shard for tenant acme"
        gate.set()
        assert (await queue.reshard(2)).shards == 2
    assert (await queue.shards()).dedicated == ("acme",)


async def is_running(handle: Handle[int]) -> bool:
    return await handle.state() == "running"
