"""What a caller of the wire may rely on with one server, and what its refusals look like."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from faena.engine.wire.address import Address
from faena.engine.wire.wire import Wire
from faena.errors import ArgumentError, ScriptError, StoreRejected, StoreUnavailable
from tests._support.eventually import eventually
from tests._support.lua import COUNT, ECHO, READ, Lua
from tests._support.valkey import Server, free_port


@pytest.fixture
def server(tcp_server: Server) -> Server:
    return tcp_server


async def test_a_script_is_loaded_on_first_use_and_answers_bytes(wire: Wire) -> None:
    await wire.call("FUNCTION", "FLUSH")
    assert await wire.run(ECHO, ["k"], [b"\0\xff", 1, "ñ"], patience_s=60) == [b"k", b"\0\xff", 3]


async def test_a_flushed_script_is_loaded_again(wire: Wire) -> None:
    await wire.run(COUNT, ["k"], [], patience_s=60)
    await wire.call("FUNCTION", "FLUSH")
    assert await wire.run(COUNT, ["k"], [], patience_s=60) == 2


async def test_what_the_packer_would_not_survive_is_refused_before_it(wire: Wire) -> None:
    for value in (10**5000, 2**63, -(2**63) - 1, True, "\ud800", None, [1]):
        with pytest.raises(ArgumentError, match="an argument must be a UTF-8 string, bytes or a"):
            await wire.call("SET", "packed", value, key="packed")
        with pytest.raises(ArgumentError, match="an argument must be a UTF-8 string, bytes or a"):
            await wire.run(ECHO, ["packed"], [value], patience_s=0)
    for value in (2**63 - 1, -(2**63), "ñ", b"\xff", 1.5):
        await wire.call("SET", "packed", value, "PX", 1, key="packed")


async def test_many_callers_share_few_connections(wire: Wire) -> None:
    narrow = Wire(wire.address, connections=2, client_name="narrow")
    try:
        calls = (narrow.run(COUNT, ["k"], [], patience_s=60) for _ in range(200))
        assert sorted(await asyncio.gather(*calls)) == list(range(1, 201))
        clients = (await wire.call("CLIENT", "LIST")).decode()
        assert clients.count("name=narrow ") == 2
    finally:
        await narrow.close()


async def test_a_unix_socket_serves_a_chosen_database() -> None:
    with Server(unix=True) as server:
        wire = Wire(Address.parse(f"{server.url}?db=3"))
        await wire.run(COUNT, ["k"], [], patience_s=60)
        info = await wire.call("INFO", "keyspace")
        await wire.close()
    assert b"db3:keys=1" in info


async def test_a_script_and_its_waits_answer_together(wire: Wire) -> None:
    await wire.call("FUNCTION", "FLUSH")
    waits = [("WAITAOF", 1, 0, 60_000), ("WAIT", 0, 10)]
    assert await wire.run_and_wait(COUNT, ["k"], [], waits, patience_s=60) == (1, [[1, 0], 0])


async def test_a_wait_never_confirms_what_another_connection_wrote_and_nobody_synced() -> None:
    """A repeated call finds its record and writes nothing; its wait must still be a real one."""
    with Server("appendfsync no") as server:
        wire = Wire(Address.parse(server.url))
        other = Wire(Address.parse(server.url))
        await other.run(COUNT, ["k"], [], patience_s=60)
        answer = await wire.run_and_wait(READ, ["k"], [], [("WAITAOF", 1, 0, 50)], patience_s=60)
        bare = Wire(Address.parse(server.url))
        await bare.run(READ, ["k"], [], patience_s=60)
        deceived = await bare.call("WAITAOF", 1, 0, 50)
        for each in (wire, other, bare):
            await each.close()
    assert answer == (b"1", [[0, 0]])
    assert deceived == [1, 0]  # why the fence is there


async def test_a_wait_the_server_cannot_do_is_told_beside_the_reply() -> None:
    with Server("appendonly no") as server:
        wire = Wire(Address.parse(server.url))
        reply, (waited,) = await wire.run_and_wait(
            COUNT, ["k"], [], [("WAITAOF", 1, 0, 50)], patience_s=60
        )
        await wire.close()
    assert reply == 1
    assert isinstance(waited, StoreRejected)
    assert "appendonly" in str(waited)


async def test_a_refusal_is_told_without_the_wait(wire: Wire) -> None:
    async def count(is_refused: Callable[[Any], bool]) -> tuple[Any, list[Any]]:
        waits = [("WAIT", 1, 600_000)]  # for a replica that there is not
        return await wire.run_and_wait(
            COUNT, ["k"], [], waits, patience_s=60, is_refused=is_refused
        )

    await wire.run(COUNT, ["k"], [], patience_s=60)
    assert await count(lambda reply: reply == 2) == (2, [])
    assert await wire.run(COUNT, ["k"], [], patience_s=60) == 3  # over another connection
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(count(lambda reply: reply == 2), 0.2)


async def test_a_fence_leaves_nothing_behind(wire: Wire) -> None:
    await wire.run_and_wait(COUNT, ["a:{q}:k"], [], [("WAIT", 0, 10)], patience_s=60)
    assert 0 < await wire.call("PTTL", "a:{q}:fence") <= 1000


async def test_a_blocked_pop_answers_with_the_key(wire: Wire) -> None:
    waiting = asyncio.create_task(wire.block_pop(["a", "b"], 5))
    await eventually(lambda: _blocked(wire))
    await wire.call("ZADD", "b", 1, "m")
    assert await waiting == "b"
    assert await wire.call("EXISTS", "b") == 0


async def test_a_blocked_pop_ends_empty_handed_in_time(wire: Wire) -> None:
    assert await wire.block_pop(["a"], 0.05) is None


async def test_a_cancelled_pop_forgets_nothing(wire: Wire) -> None:
    waiting = asyncio.create_task(wire.block_pop(["a"], 5))
    await eventually(lambda: _blocked(wire))
    waiting.cancel()
    await asyncio.wait([waiting])
    await wire.call("ZADD", "a", 1, "m")
    await eventually(lambda: _nobody_blocked(wire))
    assert await wire.block_pop(["b"], 5) == "a"


async def test_pops_for_more_keys_share_a_few_connections_and_join_in_the_end(wire: Wire) -> None:
    for number in range(1, 9):
        keys = [f"k{i}" for i in range(number)]
        waiting = asyncio.create_task(wire.block_pop(keys, 0.5))
        await eventually(lambda: _blocked(wire))
        waiting.cancel()
        await asyncio.wait([waiting])
    assert await wire.block_pop(keys, 0.5) is None
    waiting = asyncio.create_task(wire.block_pop(keys, 5))
    await eventually(lambda: _is_one_blocked(wire))
    await wire.call("ZADD", "k7", 1, "m")
    assert await waiting == "k7"


async def test_an_unblocked_wire_pops_nothing_more(wire: Wire) -> None:
    waiting = asyncio.create_task(wire.block_pop(["a"], 5))
    await eventually(lambda: _blocked(wire))
    wire.unblock()
    with pytest.raises(StoreUnavailable):
        await waiting
    await eventually(lambda: _nobody_blocked(wire))
    await wire.call("ZADD", "a", 1, "m")
    assert await wire.call("EXISTS", "a") == 1


async def test_a_cancelled_call_does_not_poison_the_pool(server: Server) -> None:
    wire = Wire(Address.parse(server.url), connections=1)
    watch = Wire(Address.parse(server.url))
    stuck = asyncio.create_task(wire.call("BLPOP", "nothing", 0))
    await eventually(lambda: _blocked(watch))
    stuck.cancel()
    await asyncio.wait([stuck])
    await watch.call("RPUSH", "nothing", "stray reply")
    assert await wire.run(ECHO, ["k"], ["mine"], patience_s=60) == [b"k", b"mine", 1]
    await wire.close()
    await watch.close()


async def test_a_broken_script_is_a_script_error(wire: Wire) -> None:
    with pytest.raises(ScriptError, match="boom failed on the broker") as caught:
        await wire.run(Lua("boom", "return redis.call('NOPE')"), ["k"], [], patience_s=60)
    assert caught.value.op == "boom"


async def test_a_full_server_refuses_at_once(wire: Wire) -> None:
    await wire.call("CONFIG", "SET", "maxmemory", 1)
    try:
        with pytest.raises(StoreRejected, match="maxmemory"):
            await wire.run(COUNT, ["k"], [], patience_s=60)
    finally:
        await wire.call("CONFIG", "SET", "maxmemory", 0)


async def test_a_missing_permission_is_refused_at_once(wire: Wire, server: Server) -> None:
    await wire.call("ACL", "SETUSER", "poor", "on", ">sesame", "~*", "+@all", "-incr")
    poor = Wire(Address.parse(f"redis://poor:sesame@127.0.0.1:{server.port}"))
    with pytest.raises(StoreRejected, match="lacks a permission"):
        await poor.call("INCR", "k", patience_s=60)
    await poor.close()


@pytest.mark.parametrize(
    ("userinfo", "complaint"),
    [
        ("", "requires a password"),
        ("default:wrong@", "password is wrong"),
        (":wrong@", "password is wrong"),
    ],
)
async def test_a_refused_login_says_so_and_never_shows_the_password(
    userinfo: str, complaint: str
) -> None:
    with Server() as server:
        with server.client() as client:
            client.config_set("requirepass", "sesame")
        wire = Wire(Address.parse(f"redis://{userinfo}127.0.0.1:{server.port}"))
        with pytest.raises(StoreRejected, match=complaint) as caught:
            await wire.run(COUNT, ["k"], [], patience_s=60)
        await wire.close()
    assert "wrong@" not in str(caught.value)


async def test_a_database_that_is_not_there_is_named(server: Server) -> None:
    wire = Wire(Address.parse(f"redis://127.0.0.1:{server.port}/99"))
    with pytest.raises(StoreRejected, match="the URL names database 99, which the server does not"):
        await wire.run(COUNT, ["k"], [], patience_s=60)
    await wire.close()


async def test_a_server_of_another_kind_is_told_at_once() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    other = await asyncio.start_server(answer, "127.0.0.1", 0)
    wire = Wire(Address.parse(f"redis://127.0.0.1:{other.sockets[0].getsockname()[1]}"))
    async with other:
        with pytest.raises(StoreRejected, match="the server there is not Valkey or Redis"):
            await wire.run(COUNT, ["k"], [], patience_s=60)
        await wire.close()


async def test_a_server_with_too_many_clients_is_waited_for(server: Server) -> None:
    with Server("maxclients 2") as full:
        guests = [Wire(Address.parse(full.url)) for _ in range(2)]
        for guest in guests:
            await guest.call("PING")
        wire = Wire(Address.parse(full.url))
        with pytest.raises(StoreUnavailable):
            await wire.run(COUNT, ["k"], [], patience_s=0.1)
        waiting = asyncio.create_task(wire.run(COUNT, ["k"], [], patience_s=60))
        await guests[0].close()
        assert await waiting == 1
        await guests[1].close()
        await wire.close()


async def test_closing_ends_the_calls_that_are_still_trying() -> None:
    for host in (f"redis://127.0.0.1:{free_port()}", f"redis+cluster://127.0.0.1:{free_port()}"):
        wire = Wire(Address.parse(host))
        trying = asyncio.create_task(wire.run(COUNT, ["k"], [], patience_s=600))
        await asyncio.wait([trying], timeout=0.1)
        assert not trying.done()
        await wire.close()
        with pytest.raises(StoreUnavailable, match="closed by this program"):
            await trying


async def test_a_closed_wire_stays_closed(wire: Wire) -> None:
    await wire.close()
    with pytest.raises(StoreUnavailable, match="closed by this program"):
        await wire.run(COUNT, ["k"], [], patience_s=60)
    with pytest.raises(StoreUnavailable, match="closed by this program"):
        await wire.block_pop(["k"], 1)


async def _blocked(wire: Wire) -> bool:
    return b"blocked_clients:0" not in await wire.call("INFO", "clients")


async def _is_one_blocked(wire: Wire) -> bool:
    return b"blocked_clients:1\r" in await wire.call("INFO", "clients")


async def _nobody_blocked(wire: Wire) -> bool:
    return not await _blocked(wire)
