"""A small HTTP/1.1 server: GET and HEAD, short heads, no bodies, bounded time and connections.

It never lets a client wait in memory: a head that is too long or too slow, bytes that are no HTTP,
and answers that nobody reads end the connection. When there are too many connections, the one that
has been idle for longest is closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, cast

import msgspec

from faena.worker.serve.request import HEAD_ENDS, LONGEST, Request, read_request

_HEAD_S: Final = 5.0
"""How long the bytes of one head may take."""
_IDLE_S: Final = 30.0
_UNREAD_S: Final = 10.0
"""How long an answer may wait for a client that reads nothing."""
_MOST: Final = 256
"""Connections at a time."""
_BACKLOG: Final = 1_024
"""Those that come at once wait there: what the kernel drops is only sent again seconds later."""
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
}

_log = logging.getLogger("faena.worker")


class Response(NamedTuple):
    """What is answered."""

    status: int
    body: bytes
    content_type: str = "application/json"


Answer = Callable[[Request], Awaitable[Response]]


def in_json(status: int, document: object) -> Response:
    """An answer in JSON, which ends with a line end for people at a terminal."""
    return Response(status, msgspec.json.encode(document) + b"\n")


class HttpServer:
    """Listens on one address; belongs to one event loop."""

    def __init__(self, answer: Answer) -> None:
        """`answer` is given requests of GET and HEAD."""
        self.answer = answer
        self._server: asyncio.Server | None = None
        self._connections: dict[_Connection, None] = {}
        """Idle ones first, the one that has been idle for longest before the others."""

    async def open(self, host: str, port: int) -> int:
        """Listen; returns the port. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Connection(self), host, port, backlog=_BACKLOG
        )
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Close the socket and every connection."""
        if self._server is not None:
            self._server.close()
        for connection in tuple(self._connections):
            connection.abort()
        await asyncio.sleep(0)  # the transports report their end in the next turn of the loop

    def joined(self, connection: _Connection) -> None:
        """A client has connected."""
        if len(self._connections) >= _MOST:
            idle = next((one for one in self._connections if not one.is_busy), connection)
            idle.abort()
        self.used(connection)

    def used(self, connection: _Connection) -> None:
        """It counts as idle from now on."""
        self._connections.pop(connection, None)
        self._connections[connection] = None

    def left(self, connection: _Connection) -> None:
        """It has ended."""
        self._connections.pop(connection, None)


class _Connection(asyncio.Protocol):
    """One client, with one request at a time."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._answering: asyncio.Task[None] | None = None
        self._is_ended = False
        self._is_last = False
        """Whether the client sends nothing more."""
        self._is_clogged = False
        """Whether the client reads nothing."""

    @property
    def is_busy(self) -> bool:
        return self._answering is not None

    def abort(self) -> None:
        self._is_ended = True
        if self._transport is not None:
            self._transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._wait(_HEAD_S)
        self._server.joined(self)
        if self._is_ended:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if not self._received and not self.is_busy:
            self._wait(_HEAD_S)
        self._received += data
        if self.is_busy or self._is_clogged:
            if len(self._received) > LONGEST and self._transport is not None:
                self._transport.pause_reading()
        else:
            self._next()

    def eof_received(self) -> bool:
        self._is_last = True
        return self.is_busy  # the answer is still written

    def connection_lost(self, exc: Exception | None) -> None:
        del exc  # for a server, a reset and a regular end are the same
        self._transport, self._is_ended = None, True
        self._cancel_timer()
        if self._answering is not None:
            self._answering.cancel()
        self._server.left(self)

    def pause_writing(self) -> None:
        self._is_clogged = True
        self._wait(_UNREAD_S)

    def resume_writing(self) -> None:
        self._is_clogged = False
        self._wait(_IDLE_S)
        if not self.is_busy:
            self._again()

    # one request after another

    def _next(self) -> None:
        head, end, rest = self._received.partition(HEAD_ENDS)
        if not end and len(self._received) <= LONGEST:
            return
        if not end or len(head) > LONGEST:
            self._refuse(431, "the head of a request may have 8 KiB")
            return
        self._received = rest
        request = read_request(bytes(head))
        if request is None:
            self._refuse(400, "this is not a request of HTTP/1.1")
        elif request.method not in {"GET", "HEAD"}:
            self._refuse(405, "only GET and HEAD are answered")
        else:
            self._cancel_timer()
            self._answering = self._loop.create_task(self._respond(request))

    async def _respond(self, request: Request) -> None:
        try:
            response = await self._server.answer(request)
        except Exception:  # noqa: BLE001 - a border: one request must not end the server
            _log.exception("a request for %s failed", request.path)
            response = in_json(500, {"problem": "the request failed; the log says why"})
        self._answering = None
        self._write(request._replace(is_last=request.is_last or self._is_last), response)
        if not self._is_ended:
            self._server.used(self)
            self._again()

    def _again(self) -> None:
        if self._transport is None or self._transport.is_closing() or self._is_clogged:
            return
        if self._timer is None:
            self._wait(_HEAD_S if self._received else _IDLE_S)
        self._transport.resume_reading()
        if self._received:
            self._next()

    def _write(self, request: Request, response: Response) -> None:
        if self._transport is None:
            return
        status, body, kind = response
        lines = [
            f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}",
            f"Content-Type: {kind}",
            f"Content-Length: {len(body)}",
            "Cache-Control: no-store",
            f"Connection: {'close' if request.is_last else 'keep-alive'}",
            *(["Allow: GET, HEAD"] if status == 405 else []),
        ]
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        self._transport.write(head if request.method == "HEAD" else head + body)
        if request.is_last:
            if self._timer is None:
                self._wait(_UNREAD_S)
            self._transport.close()

    def _refuse(self, status: int, problem: str) -> None:
        last = Request(method="GET", path="", is_last=True)
        self._write(last, in_json(status, {"problem": problem}))

    def _wait(self, limit_s: float) -> None:
        """Abort unless something happens in time."""
        self._cancel_timer()
        if not self._is_ended:
            self._timer = self._loop.call_later(limit_s, self.abort)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
