"""A worker process as the server sees it that answers for it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import time
from typing import Final

from faena.telemetry.measured import Measurements
from faena.worker.serve.channel import About, Answered, Ask, Channel, Left, Told, read_told, told
from faena.worker.serve.totals import Totals

_SLICE_S: Final = 0.25
_LAST_S: Final = 1.0


class Member:
    """One worker process."""

    def __init__(self, end: socket.socket, totals: Totals, pid: int) -> None:
        """`end` is the server's end of the channel."""
        self.pid = pid
        self._totals = totals
        self._asked: dict[int, asyncio.Future[bytes | None]] = {}
        self._numbers = itertools.count(1)
        self._channel: Channel | None = None
        self.about: About | None = None
        self.has_left = False
        """Whether it has ended its jobs."""
        self.heard = 0.0
        """When it said something last; it does every second."""
        self._reading = asyncio.create_task(self._read(end))

    async def ask(
        self, what: str, within_s: float, *, is_modern: bool = False, all_of: Measurements
    ) -> bytes | None:
        """The answer; None if the worker cannot tell. Raises TimeoutError.

        Time passes in slices, so that a machine that was frozen, and this process with it, gives
        the worker the time that is left.
        """
        if self._channel is None or self._channel.is_clogged:
            raise TimeoutError
        number = next(self._numbers)
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            self._channel.send(Ask(number, what, is_modern, told(all_of)))
            for _ in range(round(within_s / _SLICE_S)):
                done, _ = await asyncio.wait({answer}, timeout=_SLICE_S)
                if done:
                    return answer.result()
            raise TimeoutError
        finally:
            del self._asked[number]

    async def end(self) -> None:
        """The process has ended: read what it said last."""
        await asyncio.wait({self._reading}, timeout=_LAST_S)
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading
        self._totals.end(self)

    async def _read(self, end: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=end)
        channel = self._channel = Channel(reader, writer)
        try:
            async for message in channel.messages():
                self.heard = time.monotonic()
                match message:
                    case About():
                        self.about = message
                    case Told():
                        self._totals.tell(self, read_told(message.tasks))
                    case Answered(number=number, body=body):
                        answer = self._asked.get(number)
                        if answer is not None and not answer.done():
                            answer.set_result(body)
                    case Left():
                        self.has_left = True
                    case Ask():
                        return
        finally:
            self._channel = None
            channel.close()
            for answer in self._asked.values():
                if not answer.done():
                    answer.set_exception(TimeoutError())
