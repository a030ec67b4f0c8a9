"""What the wire does on a line that is slow, and with a server that refuses to let it wait."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from faena.engine.wire.address import Address
from faena.engine.wire.wire import Wire
from faena.errors import StoreRejected, StoreUnavailable
from tests._support.lua import COUNT
from tests._support.valkey import Server

CHUNK = 1 << 18
TIMEOUT_S = 60.0


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


class Clock:
    """The event loop's, put forward at will: what takes minutes is over at once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._real = loop.time
        self.ahead_s = 0.0

    def __call__(self) -> float:
        return self._real() + self.ahead_s


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    loop = asyncio.get_running_loop()
    clock = Clock(loop)
    monkeypatch.setattr(loop, "time", clock)
    return clock


class Line:
    """Relays at `rate` bytes a second each way; both ends fall silent after `most` bytes back."""

    def __init__(self, port: int, clock: Clock, rate: float, most: float = float("inf")) -> None:
        self._target = port
        self._clock = clock
        self._rate = rate
        self._left = most
        self._relays: set[asyncio.Task[None]] = set()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relay = asyncio.current_task()
        assert relay is not None
        self._relays.add(relay)
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        try:
            await asyncio.gather(
                self._carry(reader, back), self._carry(there, writer, is_back=True)
            )
        except (OSError, asyncio.CancelledError):
            pass  # cut by either side, or the test is over
        finally:
            back.close()
            writer.close()

    async def _carry(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, is_back: bool = False
    ) -> None:
        while data := await source.read(CHUNK):
            if is_back and self._left < len(data):
                self._clock.ahead_s += TIMEOUT_S
                await asyncio.Event().wait()
            self._left -= len(data) if is_back else 0
            sink.write(data)
            await sink.drain()
            self._clock.ahead_s += len(data) / self._rate
            await asyncio.sleep(0)

    async def end(self) -> None:
        for relay in self._relays:
            relay.cancel()
        await asyncio.gather(*self._relays, return_exceptions=True)


@asynccontextmanager
async def slow_wire(
    port: int, clock: Clock, rate: float, most: float = float("inf")
) -> AsyncIterator[Wire]:
    line, listener = Line(port, clock, rate, most), socket.socket()
    # A small window, so that what the kernel holds does not hide how slow the line is.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    listener.bind(("127.0.0.1", 0))
    relay = await asyncio.start_server(line.accept, sock=listener)
    address = Address.parse(f"redis://127.0.0.1:{listener.getsockname()[1]}")
    wire = Wire(address, call_timeout_s=TIMEOUT_S)
    try:
        yield wire
    finally:
        await wire.close()
        relay.close()
        await line.end()


async def test_a_reply_may_take_longer_than_the_timeout_while_it_comes(
    server: Server, clock: Clock
) -> None:
    with server.client() as client:
        client.set("large", b"x" * 6_000_000)
    async with slow_wire(server.port, clock, 4e4) as wire:
        assert len(await wire.call("GET", "large")) == 6_000_000
    assert clock.ahead_s > 2 * TIMEOUT_S


async def test_a_request_may_take_longer_than_the_timeout_while_it_goes(
    server: Server, clock: Clock
) -> None:
    async with slow_wire(server.port, clock, 1.6e5) as wire:
        assert await wire.call("SET", "large", b"x" * 24_000_000) == b"OK"
    assert clock.ahead_s > 2 * TIMEOUT_S


async def test_a_reply_that_stops_in_the_middle_is_given_up_a_timeout_later(
    server: Server, clock: Clock
) -> None:
    with server.client() as client:
        client.set("large", b"x" * 6_000_000)
    async with slow_wire(server.port, clock, 1e6, most=1_000_000) as wire:
        with pytest.raises(StoreUnavailable, match="no reply came"):
            await wire.call("GET", "large")
    assert TIMEOUT_S <= clock.ahead_s < 2 * TIMEOUT_S


async def test_a_wait_that_is_refused_is_told_though_its_command_ran(server: Server) -> None:
    with server.client() as client:
        client.execute_command(
            "ACL", "SETUSER", "restless", "on", ">sesame", "~*", "+@all", "-bzpopmin"
        )
        client.function_load(COUNT.library)
    wire = Wire(Address.parse(f"redis://restless:sesame@127.0.0.1:{server.port}"))
    heard: list[object] = []
    try:
        with pytest.raises(StoreRejected, match="lacks a permission"):
            await wire.block_then_run("wake", 5, COUNT, ["counted"], [], heard.append)
        assert not heard
        assert await wire.call("GET", "counted") == b"1"
    finally:
        await wire.close()
