"""The wire behind real sentinels: it finds the primary, and finds the next one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from faena import Faena
from faena.engine.wire.address import Address
from faena.engine.wire.wire import Wire
from faena.errors import StoreRejected, StoreUnavailable
from faena.producing import batcher
from tests._support.eventually import eventually
from tests._support.lua import COUNT
from tests._support.server_group import SentinelGroup
from tests._support.valkey import Server, free_port


@pytest.fixture(scope="module")
def quiet() -> Iterator[SentinelGroup]:
    with SentinelGroup() as server_group:
        yield server_group


@pytest.fixture
async def server_group() -> AsyncIterator[SentinelGroup]:
    with SentinelGroup() as server_group:
        await eventually(server_group.is_ready)
        yield server_group


@pytest.fixture
async def wire(server_group: SentinelGroup) -> AsyncIterator[Wire]:
    wire = Wire(Address.parse(server_group.url), call_timeout_s=2)
    yield wire
    await wire.close()


async def test_a_dead_primary_is_replaced_within_seconds(
    server_group: SentinelGroup, wire: Wire
) -> None:
    waits = [("WAIT", 1, 60_000)]
    assert await wire.run_and_wait(COUNT, ["k"], [], waits, patience_s=60) == (1, [1])
    blocked = asyncio.create_task(wire.block_pop(["w"], 600))
    heard: list[bytes] = []
    subscription = await wire.listen({"news": heard.append})
    server_group.primary.kill()
    with pytest.raises(StoreUnavailable):
        await blocked
    assert await wire.run(COUNT, ["k"], [], patience_s=60) == 2
    assert [node.port for node in await wire.nodes()] == [server_group.replica.port]

    await wire.call("ZADD", "w", 1, "m", patience_s=60)

    async def is_popped() -> bool:
        try:  # a sentinel that has not heard of the switch yet still names the dead one
            return await wire.block_pop(["w"], 5) == "w"
        except StoreUnavailable:
            return False

    await eventually(is_popped)

    async def is_heard() -> bool:
        await wire.call("PUBLISH", "news", "hello", patience_s=60)
        return bool(heard)

    await eventually(is_heard)
    await subscription.close()


async def test_a_switched_primary_is_followed_by_connections_that_were_open(
    server_group: SentinelGroup, wire: Wire
) -> None:
    assert await wire.run_and_wait(COUNT, ["k"], [], [("WAIT", 1, 60_000)], patience_s=60) == (
        1,
        [1],
    )
    blocked = asyncio.create_task(wire.block_pop(["w"], 600))
    with (
        server_group.primary.client() as primary
    ):  # it takes writes for good: only the sentinels tell
        primary.execute_command("ACL", "SETUSER", "default", "-replicaof", "-slaveof")
    with server_group.sentinels[0].client() as sentinel:
        sentinel.execute_command("SENTINEL", "FAILOVER", "orders")

    async def is_on_the_other() -> bool:
        await wire.run(COUNT, ["k"], [], patience_s=60)
        return [node.port for node in await wire.nodes()] == [server_group.replica.port]

    await eventually(is_on_the_other)
    with pytest.raises(StoreUnavailable):
        await asyncio.wait_for(blocked, 60)


async def test_a_receipt_says_replicated_when_as_many_have_confirmed(
    quiet: SentinelGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Faena("shop", quiet.primary.url)

    @app.queue("mail").task
    async def note() -> None: ...

    with quiet.primary.client() as client:
        await eventually(lambda: client.wait(1, 100) == 1)
    async with app:
        assert (await note.enqueue(durability="replicated")).durability == "replicated(1)"
        monkeypatch.setattr(batcher, "_DURABLE_WITHIN_S", 0.05)
        receipt = await note.enqueue(durability="replicated(2)")
    assert (receipt.status, receipt.durability) == ("created", "memory")


async def test_sentinels_that_are_down_are_passed_over(quiet: SentinelGroup) -> None:
    hosts = f"127.0.0.1:{free_port()},127.0.0.1:{free_port()},127.0.0.1:{quiet.sentinels[0].port}"
    wire = Wire(Address.parse(f"redis+sentinel://{hosts}/orders"))
    assert await wire.run(COUNT, ["k"], [], patience_s=60) == 1
    await wire.close()


async def test_an_unknown_service_is_named(quiet: SentinelGroup) -> None:
    wire = Wire(Address.parse(quiet.url.replace("/orders", "/others")))
    with pytest.raises(StoreRejected, match="no service named 'others'"):
        await wire.run(COUNT, ["k"], [], patience_s=60)
    await wire.close()


@pytest.mark.parametrize("option", ["", "?sentinel_password=wrong"])
async def test_sentinels_that_want_a_password_are_told_apart_from_their_servers(
    option: str,
) -> None:
    with Server(sentinel=True) as sentinel:
        with sentinel.client() as client:
            client.execute_command("ACL", "SETUSER", "default", "resetpass", ">sesame")
        url = f"redis+sentinel://:other@127.0.0.1:{sentinel.port}/shop{option}"
        wire = Wire(Address.parse(url))
        with pytest.raises(StoreRejected, match=r"the sentinels require .*sentinel_password="):
            await wire.run(COUNT, ["k"], [], patience_s=60)
        await wire.close()
