"""One socket to one server: sends requests and reads their replies, in order.

A `Link` carries one request (which may be several commands) at a time. If a request ends early
(silence, a cancelled caller, a lost peer), the link is closed, because a late reply must never be
taken for the answer to the next request. The timeout is for silence, not for the whole request: a
large reply over a slow line may take any time while bytes arrive.

It is an `asyncio.Protocol` over hiredis' packer and parser, for less than half of the time that a
call through redis-py takes (figures in docs/connections.md). Error replies are returned as values
(`hiredis.ReplyError`), never raised; `faults` gives them a meaning.
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

_NOTHING = object()  # hiredis hands this back when no whole reply is buffered; None is a real reply

# The stub describes a tuple of one.
pack = cast("Callable[[tuple[Any, ...]], bytes]", hiredis.pack_command)


class Link(asyncio.Protocol):
    """One connection and the one request in flight on it."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.on_push: Callable[[Any], None] | None = None  # takes replies nobody asked for
        self.ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(notEnoughData=_NOTHING)
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[list[Any]] | None = None
        self._replies: list[Any] = []
        self._on_replies: Callable[[list[Any]], None] | None = None
        self._wanted = 0
        self._timer: asyncio.TimerHandle | None = None
        self._checks_at = 0.0  # when the timer runs out
        self._timeout_s = 0.0  # of silence, of the request in flight
        self._moved_at = 0.0  # when bytes last came in, or a full buffer had gone out
        self._is_foreign = False  # whether something came in that is no reply
        self._unsent = 0  # bytes that the transport held when last looked at

    @property
    def is_open(self) -> bool:
        return self._transport is not None

    async def ask(
        self,
        data: bytes,
        wanted: int,
        timeout_s: float,
        on_replies: Callable[[list[Any]], None] | None = None,
    ) -> list[Any]:
        """Send packed commands and return their `wanted` replies; `timeout_s` is of silence.

        `on_replies` is given them the moment they are whole, a turn of the loop before the caller;
        what it raises is raised here.
        """
        if self._transport is None or self._replies:  # it ended, or spoke out of turn
            self.close()
            raise self._loss()
        waiter = self._waiter = self._loop.create_future()
        self._wanted, self._unsent, self._timeout_s = wanted, len(data), timeout_s
        self._on_replies = on_replies
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
        """Write without waiting: only for a subscribed link, whose replies go to `on_push`."""
        if self._transport is not None:
            self._transport.write(data)

    def close(self) -> None:
        """Drop the connection now; a request in flight ends with ConnectionError."""
        if self._transport is not None:
            self._transport.abort()
        self._end()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self.ended.is_set():  # the caller gave up while the connection was being made
            cast("asyncio.Transport", transport).abort()
            return
        # uvloop's transports have the methods of asyncio.Transport without being one.
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
        del exc  # resets and orderly ends are the same to a caller
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

    def _answer(self, waiter: asyncio.Future[list[Any]], replies: list[Any]) -> None:
        if self._on_replies is not None:
            try:
                self._on_replies(replies)
            except Exception as error:  # noqa: BLE001 - the caller's own, and told to it
                waiter.set_exception(error)
                return
        waiter.set_result(replies)

    def _check_in(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._checks_at = self._loop.time() + delay_s
        self._timer = self._loop.call_later(delay_s, self._check)

    def _check(self) -> None:
        """End the request after so much silence.

        The timer outlives requests and is set anew when it has run out: one for each would cost
        more than all else that is done here.
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
        # A server that turns us away (too many clients) says so unasked, and hangs up.
        if self._replies and isinstance(self._replies[0], hiredis.ReplyError):
            return self._replies[0]
        return NotOurs("no reply") if self._is_foreign else ConnectionError("connection lost")


async def open_link(node: Node, tls: ssl.SSLContext | None) -> Link:
    """Connect; raises OSError (TimeoutError and ssl.SSLError among them) when it cannot."""
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
    """Have the kernel notice a dead peer in about 30 s, also while nothing is being asked."""
    options = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
    with contextlib.suppress(OSError):  # a Unix socket has no such options
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in options:
            if hasattr(socket, name):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
