"""Tells the server of a worker process what it has measured, and answers its questions.

It runs on the worker's event loop: a process whose loop is blocked, or that is frozen, does not
answer, and that is what its server reports.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Final

from faena.errors import ConfigError, shown
from faena.telemetry.measured import Measurements
from faena.worker.serve.channel import About, Answered, Ask, Channel, Left, TaskTold, Told

VARIABLE: Final = "FAENA_REPORTS"
_EVERY_S: Final = 1.0
_LAST_S: Final = 1.0

Maker = Callable[[Ask], Awaitable[bytes]]

_log = logging.getLogger("faena.worker")


class Reporter:
    """The worker's end of a channel."""

    def __init__(
        self,
        end: socket.socket,
        about: About,
        makers: Mapping[str, Maker],
        measured: Measurements,
    ) -> None:
        """`makers` has what can be asked for."""
        self._end, self._about = end, about
        self._makers, self._measured = makers, measured
        self._sent: dict[tuple[str, str], tuple[int, ...]] = {}
        self._answering: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Report until cancelled; what was measured last is told at the end."""
        reader, writer = await asyncio.open_connection(sock=self._end)
        channel = Channel(reader, writer)
        channel.send(self._about)
        listening = asyncio.create_task(self._listen(channel))
        try:
            while True:
                self._tell(channel)
                await channel.sent()
                await asyncio.sleep(_EVERY_S)
        finally:
            for task in (listening, *self._answering):
                task.cancel()
            self._tell(channel)
            channel.send(Left())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_S):
                    await channel.sent()
            channel.close()

    def _tell(self, channel: Channel) -> None:
        """Tasks that had jobs since the last time; none is a sign of life."""
        news: list[TaskTold] = []
        for names, one in self._measured.items():
            seen = (one.started, one.completed, one.retried, one.dead, one.runs.count)
            if self._sent.get(names) != seen:
                self._sent[names] = seen
                news.append(TaskTold.of(names, one))
        channel.send(Told(news))

    async def _listen(self, channel: Channel) -> None:
        async for message in channel.messages():
            if isinstance(message, Ask):
                task = asyncio.create_task(self._answer(channel, message))
                self._answering.add(task)
                task.add_done_callback(self._answering.discard)

    async def _answer(self, channel: Channel, ask: Ask) -> None:
        maker, body = self._makers.get(ask.what), None
        if maker is not None:
            try:
                body = await maker(ask)
            except Exception:  # noqa: BLE001 - a border: a question must not end the worker
                _log.exception("the worker could not answer for /%s", ask.what)
        channel.send(Answered(ask.number, body))


def from_environ(environ: MutableMapping[str, str]) -> socket.socket | None:
    """The worker's end, if its supervisor serves; the variable is removed, as with the lifeline."""
    number = environ.pop(VARIABLE, None)
    if number is None:
        return None
    try:
        end = socket.socket(fileno=int(number))
    except (ValueError, OSError) as error:
        raise ConfigError(
            f"{VARIABLE} must be the number of an open socket, got {shown(number)}: unset it",
            field=VARIABLE,
            value=number,
        ) from error
    end.set_inheritable(False)
    return end
