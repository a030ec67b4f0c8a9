"""One socket to one server: sends requests and reads their replies, in order.

A `Link` carries one request (which may be several commands) at a time. If a request ends early
(silence, a cancelled caller, a lost peer), the link is closed, because a late reply must never be
taken for the answer to the next request. The timeout limits silence, not the whole request: a large
reply over a slow network may take any time while bytes arrive.

It is an `asyncio.Protocol` with the packer and parser of hiredis. A call takes less than half the
time of a call through redis-py (figures in docs/connections.md). Error replies are returned as
values (`hiredis.ReplyError`), never raised; `faults` interprets them.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import Any, cast

import hiredis

from faena.engine.wire.address import Node
from faena.engine.wire.faults import NotOurs

_NOTHING = object()  # what hiredis returns without a complete reply; None is a real reply

# The type stub allows only a tuple of one element.
pack = cast("Callable[[tuple[Any, ...]], bytes]", hiredis.pack_command)


class Link(asyncio.Protocol):
    """One connection, with at most one request in flight."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.on_push: Callable[[Any], None] | None = None  # takes replies without a request
        self.ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(notEnoughData=_NOTHING)
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[list[Any]] | None = None
        self._replies: list[Any] = []
        self._on_replies: Callable[[list[Any]], None] | None = None
        self._is_enough: Callable[[Any], bool] | None = None
        self._wanted = 0
        self._timer: asyncio.TimerHandle | None = None
        self._checks_at = 0.0  # when the timer runs out
        self._timeout_s = 0.0  # the longest silence for the request in flight
        self._moved_at = 0.0  # when bytes last arrived, or a full write buffer was drained
        self._is_foreign = False  # whether bytes arrived that are not a reply
        self._unsent = 0  # bytes in the write buffer at the last check

    @property
    def is_open(self) -> bool:
        return self._transport is not None

    async def ask(
        self,
        data: bytes,
        wanted: int,
        timeout_s: float,
        on_replies: Callable[[list[Any]], None] | None = None,
        is_enough: Callable[[Any], bool] | None = None,
    ) -> list[Any]:
        """Send packed commands and return their `wanted` replies; `timeout_s` limits silence.

        `on_replies` is called as soon as all replies are there, one loop turn before the caller
        gets them. Its exceptions are raised here. If `is_enough` says so of the first reply, only
        that is returned, and the link is closed.
        """
        if self._transport is None or self._replies:  # it ended, or got a reply without a request
            self.close()
            raise self._loss()
        waiter = self._waiter = self._loop.create_future()
        self._wanted, self._unsent, self._timeout_s = wanted, len(data), timeout_s
        self._on_replies, self._is_enough = on_replies, is_enough
        self._moved_at = self._loop.time()
        if self._timer is None or self._moved_at + timeout_s < self._checks_at:
            self._check_in(timeout_s)
        self._transport.write(data)
        try:
            return await waiter
        except BaseException:
            self.close()
            raise

    def send(self, data: bytes) -> None:
        """Write without waiting; only for subscribed links, whose replies go to `on_push`."""
        if self._transport is not None:
            self._transport.write(data)

    def close(self) -> None:
        """Drop the connection now; a request in flight ends with ConnectionError."""
        if self._transport is not None:
            self._transport.abort()
        self._end()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self.ended.is_set():  # the caller gave up during the connect
            cast("asyncio.Transport", transport).abort()
            return
        # uvloop's transports have the methods of asyncio.Transport but are not instances of it.
        self._transport = cast("asyncio.Transport", transport)
        _keep_alive(transport.get_extra_info("socket"))

    def resume_writing(self) -> None:
        self._moved_at = self._loop.time()

    def data_received(self, data: bytes) -> None:
        self._moved_at = self._loop.time()
        reader = self._reader
        try:
            reader.feed(data)
            while (reply := reader.gets()) is not _NOTHING:
                self._accept(reply)
        except hiredis.ProtocolError:
            self._is_foreign = True
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc  # for a caller, a reset and a regular end are the same
        self._end()

    def _accept(self, reply: Any) -> None:
        if self._waiter is None and self.on_push is not None:
            self.on_push(reply)
            return
        self._replies.append(reply)
        if self._waiter is not None and len(self._replies) == self._wanted:
            waiter, self._waiter = self._waiter, None
            replies, self._replies = self._replies, []
            if not waiter.done():
                self._answer(waiter, replies)
        elif self._is_enough is not None and len(self._replies) == 1 and self._is_enough(reply):
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result([reply])
            self.close()

    def _answer(self, waiter: asyncio.Future[list[Any]], replies: list[Any]) -> None:
        if self._on_replies is not None:
            try:
                self._on_replies(replies)
            except Exception as error:  # noqa: BLE001 - the caller's callback, raised in the caller
                waiter.set_exception(error)
                return
        waiter.set_result(replies)

    def _check_in(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._checks_at = self._loop.time() + delay_s
        self._timer = self._loop.call_later(delay_s, self._check)

    def _check(self) -> None:
        """End the request if the silence was too long.

        The timer is kept over several requests and is set again after it fires. A timer per request
        would cost more than all other work of a link.
        """
        self._timer = None
        if self._waiter is None or self._waiter.done() or self._transport is None:
            return
        now, unsent = self._loop.time(), self._transport.get_write_buffer_size()
        if 0 < unsent < self._unsent:
            self._moved_at = now
        self._unsent = unsent
        left_s = self._moved_at + self._timeout_s - now
        if left_s > 0:
            self._check_in(left_s)
        else:
            self._waiter.set_exception(TimeoutError("no reply came"))

    def _end(self) -> None:
        self._transport = None
        self.ended.set()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(self._loss())

    def _loss(self) -> Exception:
        # A server that refuses a connection (too many clients) sends an error and disconnects.
        if self._replies and isinstance(self._replies[0], hiredis.ReplyError):
            return self._replies[0]
        return NotOurs("no reply") if self._is_foreign else ConnectionError("connection lost")


async def open_link(node: Node, tls: ssl.SSLContext | None) -> Link:
    """Connect, or raise OSError (which includes TimeoutError and ssl.SSLError)."""
    loop = asyncio.get_running_loop()
    link = Link(node)
    try:
        if node.path:
            await loop.create_unix_connection(lambda: link, node.path)
        else:
            name = node.host if tls else None
            await loop.create_connection(
                lambda: link, node.host, node.port, ssl=tls, server_hostname=name
            )
    except BaseException:
        link.close()
        raise
    return link


def _keep_alive(sock: socket.socket) -> None:
    """Let the kernel detect a dead peer in about 30 s, even without a request in flight."""
    options = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
    with contextlib.suppress(OSError):  # a Unix socket has no such options
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in options:
            if hasattr(socket, name):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
