"""Messages over a pair of sockets between a worker process and who answers for it.

    worker → server    about           the app and its options, once
                       told            what was measured since the last time, by task, in all
                       answer N        to what was asked
                       left            it has ended its jobs, and answers no more
    server → worker    ask N           for its vitals, or for a page

Each message is a length and MessagePack. A message that is cut off by the death of its sender is
dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from faena.telemetry.histogram import Histogram
from faena.telemetry.measured import Exemplar, Measured, Measurements

_HEAD: Final = 4
_LONGEST: Final = 64 << 20
_CLOGGED: Final = 1 << 20


class TaskTold(msgspec.Struct, frozen=True, array_like=True):
    """What a process has measured of one task since it began."""

    queue: str
    task: str
    counts: tuple[int, int, int, int]
    """Started, completed, retried, dead."""
    waits: list[int]
    runs: list[int]
    totals: list[int]
    exemplar: tuple[str, int, float] | None

    @classmethod
    def of(cls, names: tuple[str, str], one: Measured) -> TaskTold:
        """The measurements of a task, to be sent."""
        counts = (one.started, one.completed, one.retried, one.dead)
        kinds = (one.waits.packed(), one.runs.packed(), one.totals.packed())
        return cls(*names, counts, *kinds, one.exemplar)

    def read(self) -> Measured:
        """The same as measurements."""
        one = Measured()
        one.started, one.completed, one.retried, one.dead = self.counts
        one.waits, one.runs, one.totals = map(Histogram.read, (self.waits, self.runs, self.totals))
        one.exemplar = Exemplar(*self.exemplar) if self.exemplar else None
        return one


def told(measured: Measurements) -> list[TaskTold]:
    """All tasks, to be sent."""
    return [TaskTold.of(names, one) for names, one in measured.items()]


def read_told(tasks: list[TaskTold]) -> Measurements:
    """All tasks as measurements."""
    return {(one.queue, one.task): one.read() for one in tasks}


class About(msgspec.Struct, frozen=True, array_like=True, tag="about"):
    """The app, for a page that is made without it."""

    app: str
    tenants: int
    aliases: bool


class Told(msgspec.Struct, frozen=True, array_like=True, tag="told"):
    """What was measured of tasks that had jobs since the last message."""

    tasks: list[TaskTold]


class Ask(msgspec.Struct, frozen=True, array_like=True, tag="ask"):
    """A question; `tasks` is what all processes have measured."""

    number: int
    what: str
    is_modern: bool = False
    """Whether a page of metrics is to be in OpenMetrics."""
    tasks: list[TaskTold] = []


class Answered(msgspec.Struct, frozen=True, array_like=True, tag="answer"):
    """The answer to a question; None if the worker does not know what was asked."""

    number: int
    body: bytes | None


class Left(msgspec.Struct, frozen=True, array_like=True, tag="left"):
    """The worker has ended its jobs; its process may take a moment more."""


Message = About | Told | Ask | Answered | Left

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Message)


class Channel:
    """One end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def send(self, message: Message) -> None:
        """Write without waiting; nothing happens if the other end is gone."""
        body = _encoder.encode(message)
        self._writer.write(len(body).to_bytes(_HEAD) + body)

    async def sent(self) -> None:
        """Wait until the other end has read nearly everything."""
        with contextlib.suppress(OSError):
            await self._writer.drain()

    async def messages(self) -> AsyncIterator[Message]:
        """What the other end says, until it is gone or says what is no message."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, msgspec.MsgspecError):
            while True:
                size = int.from_bytes(await self._reader.readexactly(_HEAD))
                if size > _LONGEST:
                    return
                yield _decoder.decode(await self._reader.readexactly(size))

    @property
    def is_clogged(self) -> bool:
        """Whether the other end has read nothing for long."""
        return self._writer.transport.get_write_buffer_size() > _CLOGGED

    def close(self) -> None:
        """End it."""
        self._writer.close()
