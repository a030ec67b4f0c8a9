"""A receiver of notices: HTTP on loopback, with a ledger of every request that it was ever sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import msgspec


@dataclass(frozen=True)
class Request:
    """One that was received whole."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return msgspec.json.decode(self.body)


@dataclass
class NoticeReceiver:
    """`status` is what it answers; 0 closes the connection instead, and -1 never answers."""

    status: int = 200
    location: str = ""
    requests: list[Request] = field(default_factory=list)
    _server: asyncio.Server | None = None
    _open: set[asyncio.Task[Any]] = field(default_factory=set)

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/hook?team=ops"

    def told(self) -> list[str]:
        """What was told of which alert, in the order of arrival."""
        return [
            f"{one['rule']} {one['subject']} {one['severity']} {one['change']}"
            for request in self.requests
            for one in request.document["alerts"]
        ]

    def of(self, accept: Callable[[Request], bool]) -> list[Request]:
        return [one for one in self.requests if accept(one)]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            with suppress(OSError, EOFError):
                await self._answer(reader, writer)
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            writer.close()
            self._open.discard(task)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
        headers = dict(line.lower().split(": ", 1) for line in lines)
        body = await reader.readexactly(int(headers["content-length"]))
        exact = dict(line.split(": ", 1) for line in lines)
        self.requests.append(Request(first.split()[1], exact, body))
        if self.status < 0:
            await asyncio.Event().wait()
        if self.status:
            more = f"location: {self.location}\r\n" if self.location else ""
            head = f"HTTP/1.1 {self.status} -\r\n{more}content-length: 0\r\n\r\n"
            writer.write(head.encode())
            await writer.drain()
