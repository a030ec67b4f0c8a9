"""A TCP relay in front of a server, for what a network does: going silent, cutting off, TLS."""

from __future__ import annotations

import asyncio
import ssl
from types import TracebackType
from typing import Self


class Relay:
    """Listens on a free loopback port, in front of another one."""

    def __init__(self, port: int, *, tls: ssl.SSLContext | None = None) -> None:
        self._target = port
        self._tls = tls
        self._server: asyncio.Server | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        await self._close(self._server)

    async def _close(self, server: asyncio.Server) -> None:
        raise NotImplementedError

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError


class Proxy(Relay):
    """Passes everything on until it is told otherwise."""

    def __init__(self, port: int, *, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(port, tls=tls)
        self._pairs: list[_Pair] = []
        self._is_silent = False

    @property
    def connections(self) -> int:
        """How many were accepted so far."""
        return len(self._pairs)

    def freeze(self) -> int:
        """Relay nothing more on the connections there are, and leave them open.

        New ones work: so does a network that forgot the old flows. Returns how many were frozen.
        """
        for pair in self._pairs:
            pair.is_frozen = True
        return len(self._pairs)

    def silence(self) -> None:
        """Lose every packet, of connections there are and of new ones; nothing is closed."""
        self._is_silent = True
        for pair in self._pairs:
            pair.hold()

    def speak(self, *, forgets: bool) -> None:
        """End the silence: new connections work, and old ones unless the network forgets them."""
        self._is_silent = False
        for pair in self._pairs:
            pair.release(forgets=forgets)

    def swallowed(self) -> int:
        """How many frozen connections have been written to since."""
        return sum(pair.has_swallowed for pair in self._pairs)

    def cut(self) -> None:
        """Close every connection."""
        for pair in self._pairs:
            pair.close()

    async def _close(self, server: asyncio.Server) -> None:
        server.close()
        self.cut()
        await asyncio.gather(*(pair.done.wait() for pair in self._pairs))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pair = _Pair(writer)
        if self._is_silent:
            pair.hold()
        self._pairs.append(pair)
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
            pair.writers.append(back)
            async with asyncio.TaskGroup() as both:
                both.create_task(pair.relay(reader, back))
                both.create_task(pair.relay(there, writer))
        except* OSError:
            pass
        finally:
            pair.close()
            pair.done.set()


class _Pair:
    """One accepted connection and the one made for it."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writers = [writer]
        self.is_frozen = False
        self.has_swallowed = False
        self.done = asyncio.Event()
        self._may_pass = asyncio.Event()
        self._may_pass.set()

    def hold(self) -> None:
        """Keep what is written from now on, as a sender does whose packets are lost."""
        self._may_pass.clear()

    def release(self, *, forgets: bool) -> None:
        """Pass it on, or nothing ever again."""
        self.is_frozen = self.is_frozen or (forgets and not self._may_pass.is_set())
        self._may_pass.set()

    async def relay(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            await self._may_pass.wait()
            if self.is_frozen:
                self.has_swallowed = True
            else:
                sink.write(data)
                await sink.drain()
        self.close()

    def close(self) -> None:
        self._may_pass.set()
        for writer in self.writers:
            writer.close()
