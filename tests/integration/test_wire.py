"""What a caller of the wire may rely on while one server behaves, and while it does not."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pytest

from faena.engine.address import Address
from faena.engine.wire import Wire
from faena.errors import ScriptError, StoreUnavailable
from tests._support.valkey import Server


@dataclass(frozen=True)
class Lua:
    name: str
    source: str

    @property
    def sha(self) -> str:
        return hashlib.sha1(self.source.encode()).hexdigest()


ECHO = Lua("echo", "return {KEYS[1], ARGV[1], #ARGV}")
COUNT = Lua("count", "return redis.call('INCR', KEYS[1])")


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
async def wire(server: Server) -> AsyncIterator[Wire]:
    wire = Wire(Address.parse(server.url))
    yield wire
    await wire.close()


async def test_a_script_is_loaded_on_first_use_and_answers_bytes(wire: Wire) -> None:
    assert await wire.run(ECHO, ["k"], [b"\x00\xff", 1, "ñ"], patience_s=1) == [
        b"k",
        b"\x00\xff",
        3,
    ]


async def test_a_flushed_script_is_loaded_again(wire: Wire) -> None:
    await wire.run(COUNT, ["k"], [], patience_s=1)
    await wire.call("SCRIPT", "FLUSH")
    assert await wire.run(COUNT, ["k"], [], patience_s=1) == 2


async def test_a_script_and_its_waits_answer_together(wire: Wire) -> None:
    reply, waits = await wire.run_and_wait(
        COUNT, ["k"], [], [("WAITAOF", 1, 0, 5000), ("WAIT", 0, 10)], patience_s=5
    )
    assert (reply, waits) == (1, [[1, 0], 0])


async def test_a_blocked_pop_answers_with_the_key(wire: Wire) -> None:
    waiting = asyncio.create_task(wire.block_pop(["a", "b"], 5))
    await wire.call("ZADD", "b", 1, "m")
    assert await waiting == "b"


async def test_a_blocked_pop_ends_empty_handed_in_time(wire: Wire) -> None:
    assert await wire.block_pop(["a"], 0.05) is None


async def test_a_broken_script_is_a_script_error(wire: Wire) -> None:
    with pytest.raises(ScriptError, match="boom failed"):
        await wire.run(Lua("boom", "return redis.call('NOPE')"), ["k"], [], patience_s=1)


async def test_an_outage_ends_in_an_error_and_then_in_an_answer(wire: Wire, server: Server) -> None:
    assert await wire.run(COUNT, ["k"], [], patience_s=1) == 1
    server.kill()
    with pytest.raises(StoreUnavailable, match="count could not reach"):
        await wire.run(COUNT, ["k"], [], patience_s=0.2)
    waiting = asyncio.create_task(wire.run(COUNT, ["k"], [], patience_s=10))
    await asyncio.to_thread(server.start)
    assert await waiting >= 1
