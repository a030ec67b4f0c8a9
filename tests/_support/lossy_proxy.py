"""A relay that loses replies: the server does what it was asked, and the caller hears nothing."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable

import hiredis

from tests._support.proxy import Relay


class LossyProxy(Relay):
    """Relays to a loopback port; the first reply to each request that `loses` picks is lost.

    A lost reply is an answered request whose connection is cut. The same bytes sent again are
    answered. Whole commands that arrive together are one request; each waits for its reply, which
    must fit into one read.
    """

    def __init__(self, port: int, loses: Callable[[bytes], bool]) -> None:
        super().__init__(port)
        self._loses = loses
        self._seen: set[bytes] = set()
        self._relays: set[asyncio.Task[None]] = set()
        self._is_closing = False
        self.lost = 0

    async def _close(self, server: asyncio.Server) -> None:
        self._is_closing = True
        # A connection accepted but not yet served when the server closes would never be closed.
        await _some_turns()
        server.close()
        for relay in self._relays:
            relay.cancel()
        await asyncio.gather(*self._relays, return_exceptions=True)
        await _some_turns()  # until the transports have heard of their end

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relay = asyncio.current_task()
        assert relay is not None
        if self._is_closing:
            writer.close()
            return
        self._relays.add(relay)
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
            try:
                await self._relay(reader, writer, there, back)
            finally:
                back.close()
        except (OSError, asyncio.CancelledError):
            pass  # cut by either side, or the test is over
        finally:
            self._relays.discard(relay)
            writer.close()

    async def _relay(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        there: asyncio.StreamReader,
        back: asyncio.StreamWriter,
    ) -> None:
        while request := await _read_request(reader):
            back.write(request)
            reply = await there.read(1 << 20)
            if not reply or self._is_lost(request):
                return
            writer.write(reply)

    def _is_lost(self, request: bytes) -> bool:
        digest = hashlib.sha256(request).digest()
        if not self._loses(request) or digest in self._seen:
            return False
        self._seen.add(digest)
        self.lost += 1
        return True


async def _read_request(reader: asyncio.StreamReader) -> bytes:
    """Bytes up to the end of a command, which a library is too long to send in one piece."""
    request, parser = b"", hiredis.Reader()
    while data := await reader.read(1 << 20):
        request += data
        parser.feed(data)
        while parser.gets() is not False:
            pass
        if not parser.has_data():
            break
    return request


async def _some_turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)
