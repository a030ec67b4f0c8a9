"""An outside service for tests: HTTP on loopback, with a ledger of every call it was ever sent.

    async with StandIn() as service:
        service.mode = down                 # or fine, slow, too_many("2"), broken_for("acme"), …
        service.calls                       # each with instants, process, job, tenant and status

A mode answers one call, and may be any function. Instants are wall clock, in microseconds, as those
of a broker on the same machine are.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from types import TracebackType
from typing import Any, NamedTuple, Self

import httpx

SENT, JOB, PID, TENANT = "x-sent", "x-job", "x-pid", "x-tenant"


class Reply(NamedTuple):
    """What a call is answered; without a status the connection is closed instead."""

    status: int | None = 200
    headers: tuple[str, ...] = ()
    after: Any = None
    """What is awaited before, if anything."""


@dataclass
class Call:
    """One call that has arrived."""

    arrived_us: int
    sent_us: int
    """When its caller began it."""
    pid: int
    job: str
    tenant: str
    status: int | None = None
    ended_us: int = 0
    """When it was answered; 0 for not yet."""


Mode = Callable[[Call], Reply]


def fine(call: Call) -> Reply:
    return Reply()


def down(call: Call) -> Reply:
    return Reply(503)


def cut(call: Call) -> Reply:
    """Close the connection without an answer."""
    return Reply(None)


def slow(seconds: float) -> Mode:
    return lambda call: Reply(after=asyncio.sleep(seconds))


def held(until: asyncio.Event) -> Mode:
    """Answer when a test says so."""
    return lambda call: Reply(after=until.wait())


def too_many(retry_after: str) -> Mode:
    """429, as seconds or as an HTTP date."""
    return lambda call: Reply(429, (f"retry-after: {retry_after}",))


def broken_for(*tenants: str) -> Mode:
    """A customer's credentials no longer work."""
    return lambda call: Reply(503 if call.tenant in tenants else 200)


def http_date(seconds: float) -> str:
    """The instant in so many seconds, rounded up as HTTP has whole ones."""
    return formatdate(int(time.time() + seconds) + 1, usegmt=True)


def now_us() -> int:
    return time.time_ns() // 1000


@dataclass
class StandIn:
    """The service."""

    mode: Mode = fine
    calls: list[Call] = field(default_factory=list)
    _server: asyncio.Server | None = None
    _open: set[asyncio.Task[Any]] = field(default_factory=set)

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"

    def answered(self, *statuses: int | None) -> list[Call]:
        """The calls that were answered so, in the order they arrived."""
        return [one for one in self.calls if one.ended_us and one.status in statuses]

    def between(self, since_us: int, until_us: int) -> list[Call]:
        """The calls that arrived in a stretch of time."""
        return [one for one in self.calls if since_us < one.arrived_us < until_us]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1000)
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
            with suppress(OSError, EOFError):  # its caller was killed
                while await self._answer(await reader.readuntil(b"\r\n\r\n"), writer):
                    pass
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            writer.close()
            self._open.discard(task)

    async def _answer(self, head: bytes, writer: asyncio.StreamWriter) -> bool:
        lines = [line.split(": ", 1) for line in head.decode().split("\r\n")[1:-2]]
        said = {name.lower(): value for name, value in lines}
        call = Call(now_us(), int(said[SENT]), int(said[PID]), said[JOB], said[TENANT])
        self.calls.append(call)
        reply = self.mode(call)
        if reply.after is not None:
            await reply.after
        call.status, call.ended_us = reply.status, now_us()
        if reply.status is None:
            return False
        answer = (f"HTTP/1.1 {reply.status} -", *reply.headers, "content-length: 0", "", "")
        writer.write("\r\n".join(answer).encode())
        await writer.drain()
        return True


async def call_stand_in(
    client: httpx.AsyncClient, url: str, *, pid: int, job: str, tenant: str
) -> None:
    """Call it, and raise as httpx does."""
    about = {SENT: str(now_us()), PID: str(pid), JOB: job, TENANT: tenant or "-"}
    (await client.get(url, headers=about)).raise_for_status()
