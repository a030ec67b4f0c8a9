"""Serves for a worker without a supervisor: from a thread, since nothing on a blocked loop can.

The thread has an event loop of its own, and speaks with the worker as a supervisor does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import AsyncGenerator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Final, Protocol

from faena.worker.serve.address import ServeAddress
from faena.worker.serve.endpoints import Endpoints
from faena.worker.serve.member import Member
from faena.worker.serve.server import open_server
from faena.worker.serve.team import Team
from faena.worker.serve.totals import Totals

_END_WITHIN_S: Final = 5.0


class Watched(Protocol):
    """What is seen of a worker from another thread."""

    serving: asyncio.Event

    @property
    def is_stopping(self) -> bool:
        """Whether a stop was requested."""
        ...


class ServerThread:
    """The server of the one worker in this process."""

    def __init__(self, address: ServeAddress) -> None:
        self._address = address
        self._end, self.end = socket.socketpair()
        """The server's end of the channel, and the worker's."""
        self._worker: Watched | None = None
        self._members: list[Member] = []
        self._opened: Future[None] = Future()
        self._ending: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._thread = threading.Thread(target=self._main, name="faena-serve", daemon=True)

    async def start(self) -> None:
        """Start it; raises if its port was chosen and cannot be had."""
        self._thread.start()
        await asyncio.wrap_future(self._opened)

    def stop(self) -> None:
        """End it; called from another thread than the event loop's, because it waits."""
        if self._ending is not None:
            loop, event = self._ending
            with contextlib.suppress(RuntimeError):  # it has ended
                loop.call_soon_threadsafe(event.set)
        self.end.close()
        self._thread.join(_END_WITHIN_S)
        self._end.close()

    def watch(self, worker: Watched) -> None:
        """The worker that it answers for."""
        self._worker = worker

    def _main(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:  # noqa: BLE001 - raised by `start`
            if not self._opened.done():
                self._opened.set_exception(error)

    async def _serve(self) -> None:
        event = asyncio.Event()
        self._ending = asyncio.get_running_loop(), event
        totals = Totals()
        server = await open_server(self._address, Endpoints(self._look, totals))
        member = Member(self._end, totals, os.getpid())
        self._members.append(member)
        self._opened.set_result(None)
        await event.wait()
        if server is not None:
            await server.close()
        await member.end()

    def _look(self) -> Team:
        """Reads only flags: the worker is another thread's."""
        worker = self._worker
        if worker is None or not worker.serving.is_set():
            return Team("starting", (), 1)
        return Team("stopping" if worker.is_stopping else "serving", self._members, 1)


@asynccontextmanager
async def serving_at(address: ServeAddress | None) -> AsyncGenerator[ServerThread | None]:
    """A server inside the block; None without an address."""
    if address is None:
        yield None
        return
    thread = ServerThread(address)
    try:
        await thread.start()
        yield thread
    finally:
        await asyncio.to_thread(thread.stop)
