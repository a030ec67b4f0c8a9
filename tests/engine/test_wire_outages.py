"""What the wire does while a server restarts, goes silent, loads, or is only a replica."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
from collections.abc import AsyncIterator

import pytest

from faena.engine.wire.address import Address
from faena.engine.wire.wire import Wire
from faena.errors import StoreUnavailable
from tests._support.eventually import eventually
from tests._support.lua import COUNT, ECHO, READ
from tests._support.proxy import Proxy
from tests._support.valkey import Server


@pytest.fixture
async def proxy(server: Server) -> AsyncIterator[Proxy]:
    async with Proxy(server.port) as proxy:
        yield proxy


@pytest.fixture
async def quick(proxy: Proxy) -> AsyncIterator[Wire]:
    wire = Wire(Address.parse(proxy.url), call_timeout_s=2)
    yield wire
    await wire.close()


async def test_an_outage_longer_than_the_patience_is_an_error(wire: Wire, server: Server) -> None:
    await wire.run(COUNT, ["k"], [], patience_s=60)
    server.kill()
    with pytest.raises(StoreUnavailable, match=r"^could not reach the broker") as caught:
        await wire.run(COUNT, ["k"], [], patience_s=0.2)
    assert caught.value.op == "count"


async def test_an_outage_shorter_than_the_patience_is_only_a_delay(
    wire: Wire, server: Server
) -> None:
    await wire.run(COUNT, ["k"], [], patience_s=60)
    server.stop()
    waiting = asyncio.create_task(wire.run(COUNT, ["k"], [], patience_s=60))
    await asyncio.to_thread(server.start)
    assert await waiting == 2


async def test_a_blocked_pop_tells_of_an_outage_and_works_after_it(
    wire: Wire, server: Server
) -> None:
    waiting = asyncio.create_task(wire.block_pop(["w"], 10))
    await eventually(lambda: _is_blocked(wire))
    server.kill()
    with pytest.raises(StoreUnavailable, match=r"^could not reach"):
        await waiting
    server.start()
    await wire.call("ZADD", "w", 1, "m", patience_s=60)
    assert await wire.block_pop(["w"], 60) == "w"


async def test_a_frozen_server_is_given_up_in_time(server: Server) -> None:
    wire = Wire(Address.parse(server.url), call_timeout_s=2)
    await wire.run(COUNT, ["k"], [], patience_s=60)
    server.pause()
    try:
        with pytest.raises(StoreUnavailable, match="no reply came"):
            await wire.run(COUNT, ["k"], [], patience_s=0)
        waiting = asyncio.create_task(wire.run(READ, ["k"], [], patience_s=60))
    finally:
        server.resume()
    assert int(await waiting) >= 1
    await wire.close()


async def test_a_half_open_socket_costs_one_timeout_however_many_are_idle(
    quick: Wire, proxy: Proxy
) -> None:
    await asyncio.gather(*(quick.run(COUNT, ["k"], [], patience_s=60) for _ in range(5)))
    assert proxy.freeze() > 1
    assert await quick.run(READ, ["k"], [], patience_s=60) == b"5"
    assert proxy.swallowed() == 1


async def test_a_half_open_blocked_pop_ends_with_its_deadline(quick: Wire, proxy: Proxy) -> None:
    waiting = asyncio.create_task(quick.block_pop(["w"], 0.2))
    await eventually(lambda: _is_blocked(quick))
    proxy.freeze()
    with pytest.raises(StoreUnavailable, match="no reply came"):
        await waiting
    await quick.call("ZADD", "w", 1, "m", patience_s=60)
    assert await quick.block_pop(["w"], 60) == "w"


async def test_cut_connections_are_replaced_without_the_caller_knowing(
    quick: Wire, proxy: Proxy
) -> None:
    for expected in range(1, 6):
        assert await quick.run(COUNT, ["k"], [], patience_s=60) == expected
        proxy.cut()


async def test_nobody_gets_the_reply_to_another_request_whatever_is_cut_or_cancelled(
    quick: Wire, proxy: Proxy
) -> None:
    dice = random.Random(7)
    wrong: list[object] = []

    async def ask(number: int) -> None:
        reply = await quick.run(ECHO, [f"k{number}"], [number], patience_s=60)
        if reply != [b"k%d" % number, b"%d" % number, 1]:
            wrong.append((number, reply))

    for start in range(0, 1000, 50):
        calls = [asyncio.create_task(ask(number)) for number in range(start, start + 50)]
        await asyncio.sleep(0)
        while running := [call for call in calls if not call.done()]:
            if dice.random() < 0.3:
                dice.choice(running).cancel()
            if dice.random() < 0.05:
                proxy.cut()
            await asyncio.wait(running, timeout=0.002, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.gather(*(call for call in calls if not call.cancelled()))
    assert wrong == []


async def test_a_host_that_swallows_connections_costs_no_more_than_the_patience(
    server: Server,
) -> None:
    # A listener whose queue is full: further connections are neither made nor refused.
    with socket.socket() as listener, contextlib.ExitStack() as guests:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        for _ in range(3):
            guest = guests.enter_context(socket.socket())
            guest.setblocking(False)
            guest.connect_ex(("127.0.0.1", port))
        wire = Wire(Address.parse(f"redis://127.0.0.1:{port}"), call_timeout_s=30)
        with pytest.raises(StoreUnavailable, match="could not connect in time"):
            await wire.run(COUNT, ["k"], [], patience_s=0.3)
        await wire.close()


async def test_rebuilding_drops_every_connection_and_goes_on(quick: Wire, proxy: Proxy) -> None:
    await quick.run(COUNT, ["k"], [], patience_s=60)
    waiting = asyncio.create_task(quick.block_pop(["w"], 10))
    await eventually(lambda: _is_blocked(quick))
    before = proxy.connections
    await quick.rebuild()
    with pytest.raises(StoreUnavailable):
        await waiting
    assert await quick.run(COUNT, ["k"], [], patience_s=60) == 2
    assert proxy.connections == before + 1


async def test_rebuilding_gives_up_connections_that_are_being_opened_and_a_cancelled_call_ends(
    proxy: Proxy,
) -> None:
    wire = Wire(Address.parse(proxy.url), call_timeout_s=300)
    proxy.silence()
    waiting = asyncio.create_task(wire.run(COUNT, ["k"], [], patience_s=600))
    doomed = asyncio.create_task(wire.run(COUNT, ["k"], [], patience_s=600))
    await eventually(lambda: proxy.connections == 2)
    doomed.cancel()
    with pytest.raises(asyncio.CancelledError):
        await doomed
    proxy.speak(forgets=True)
    await wire.rebuild()
    assert await waiting == 1
    await wire.close()


async def test_a_replica_is_waited_for_until_it_is_promoted(server: Server) -> None:
    with Server(f"replicaof 127.0.0.1 {server.port}") as replica:
        wire = Wire(Address.parse(replica.url))
        with pytest.raises(StoreUnavailable, match="READONLY"):
            await wire.run(COUNT, ["k"], [], patience_s=0.1)
        waiting = asyncio.create_task(wire.run(COUNT, ["k"], [], patience_s=60))
        await wire.call("REPLICAOF", "NO", "ONE")
        assert await waiting == 1
        await wire.close()


async def test_a_demoted_server_unblocks_a_waiting_pop_as_unavailable(
    server: Server, wire: Wire
) -> None:
    with Server() as other:
        waiting = asyncio.create_task(wire.block_pop(["w"], 10))
        await eventually(lambda: _is_blocked(wire))
        await wire.call("REPLICAOF", "127.0.0.1", other.port)
        with pytest.raises(StoreUnavailable, match="UNBLOCKED"):
            await waiting


async def test_a_loading_server_is_waited_for() -> None:
    # The server answers once in 1024 commands of its log while it reads them, half a ms each.
    with Server() as server:
        with server.client() as client, client.pipeline(transaction=False) as pipeline:
            for i in range(4000):
                pipeline.set(f"key:{i}", i)
            pipeline.execute()
        server.stop()
        with (server.directory / "valkey.conf").open("a") as conf:
            conf.write("key-load-delay 500\n")
        wire = Wire(Address.parse(server.url))
        starting = asyncio.create_task(asyncio.to_thread(server.start))
        await eventually(lambda: _is_loading(wire))
        assert await wire.run(READ, ["key:3999"], [], patience_s=60) == b"3999"
        await starting
        await wire.close()


async def _is_blocked(wire: Wire) -> bool:
    return b"blocked_clients:0" not in await wire.call("INFO", "clients")


async def _is_loading(wire: Wire) -> bool:
    try:
        await wire.run(READ, ["k"], [], patience_s=0)
    except StoreUnavailable as error:
        return "LOADING" in str(error)
    return False
