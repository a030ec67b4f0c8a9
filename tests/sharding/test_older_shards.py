"""Operators whose program still knows the shards that a queue had before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from faena import Faena
from tests._support.working import Working

TENANTS = [f"t{number}" for number in range(12)]


@asynccontextmanager
async def another_program(valkey: Any, namespace: str, **options: Any) -> AsyncGenerator[Faena]:
    """A second program with the queue."""
    other = Faena("shop", valkey.url, namespace=namespace)
    other.queue("mail", **options)
    yield other
    await other.close()


async def test_what_a_program_decides_that_knows_the_old_shards_counts_at_the_new_one(
    app: Faena, valkey: Any, namespace: str, working: Working
) -> None:
    queue = app.queue("mail", order="tenant")

    @queue.task
    async def send(number: int) -> int:
        return number

    waits = await send.enqueue(1, tenant="acme")
    acme = queue.tenant("acme")
    async with another_program(valkey, namespace, order="tenant") as program:
        other = program.queues["mail"].tenant("acme")
        await other.view()  # it has seen the table, and believes it for a second
        await acme.dedicate()
        assert (await other.hold("unpaid", by="bob")).is_dedicated
        assert (await acme.view()).reason == "unpaid"
        async with working():
            await asyncio.sleep(0.3)
            assert await waits.handle.state() == "ready"
        await acme.reset()
        await acme.rejoin()
        seen = await other.view()
        assert (seen.is_dedicated, seen.is_held, seen.live) == (False, False, 1)


async def test_holds_of_a_program_that_knows_fewer_shards_are_not_lost(
    app: Faena, valkey: Any, namespace: str
) -> None:
    queue = app.queue("mail", fair=True)
    async with another_program(valkey, namespace, fair=True) as program:
        known = program.queues["mail"]
        await known.tenant("t1").view()
        await queue.reshard(4)
        for tenant in TENANTS:
            await known.tenant(tenant).hold("unpaid")
    assert [(await queue.tenant(tenant).view()).is_held for tenant in TENANTS] == [True] * 12


async def test_a_pause_and_settings_that_meet_a_change_reach_the_new_shards(
    app: Faena, valkey: Any, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = app.queue("mail", fair=True)
    async with another_program(valkey, namespace, fair=True) as program:
        known, engine = program.queues["mail"], (await program.runtime()).engine
        await known.counts()

        def meet(name: str, shards: int) -> None:
            """The change comes when the call is on its way to the first shard."""
            tell = getattr(engine, name)

            async def tell_late(shard: str, *args: Any) -> Any:
                if shard == "mail":
                    await queue.reshard(shards)
                return await tell(shard, *args)

            monkeypatch.setattr(engine, name, tell_late)

        meet("hold", 2)
        meet("configure", 3)
        meet("release", 4)
        await known.pause(reason="panic", by="Ana@example.org")
        assert await holds_of_each(app) == {shard: ["panic"] for shard in ("mail", "mail/1")}
        await known.configure(max_running=7)
        runtime = await app.runtime()
        for shard in ("mail", "mail/1", "mail/2"):
            assert (await runtime.engine.overview(shard)).settings["max_running"] == "7"
        await known.resume(reason="panic")
        assert len(await holds_of_each(app)) == 4
        assert not any((await holds_of_each(app)).values())


async def holds_of_each(app: Faena) -> dict[str, list[str]]:
    """The reasons why each shard is held."""
    runtime = await app.runtime()
    return {
        shard: [hold.reason for hold in (await runtime.engine.overview(shard)).holds]
        for shard in await runtime.routers.of("mail").names()
    }
