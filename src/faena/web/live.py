"""Pages that stay up to date: figures are read once a tick, however many tabs look at them.

A tab listens to a channel: what a page shows, in one language. A channel reads while somebody
listens, and sends each listener what has changed since it last got something. A slow listener
misses steps in between, never the last one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Mapping
from typing import Final

import msgspec

from faena.errors import FaenaError

TICK_S: Final = 2.0
_MOST_LISTENERS: Final = 2_000
_ALIVE_S: Final = 15.0
"""After this long without news a comment is sent, so that a dead connection is noticed."""
_LONGEST_S: Final = 3_600.0
"""After an hour a tab has to come again: by then it may be let in no longer."""

Reading = Callable[[], Awaitable[Mapping[str, str]]]
"""What a page shows now: name of a figure → its text."""

_json = msgspec.json.Encoder().encode
_log = logging.getLogger("faena.web")


class TooManyListeners(Exception):
    """More tabs are open than this process serves; they poll instead."""


class Hub:
    """All channels of a process."""

    def __init__(self, tick_s: float = TICK_S) -> None:
        self._tick_s = tick_s
        self._channels: dict[Hashable, _Channel] = {}
        self._listeners = 0

    async def listen(self, key: Hashable, reading: Reading) -> AsyncGenerator[bytes]:
        """What a tab is sent: server-sent events."""
        if self._listeners >= _MOST_LISTENERS:
            raise TooManyListeners
        channel = self._channels.get(key)
        if channel is None:
            channel = self._channels[key] = _Channel(reading, self._tick_s)
        self._listeners += 1
        channel.listeners += 1
        try:
            async for part in channel.follow():
                yield part
        finally:
            self._listeners -= 1
            channel.listeners -= 1
            if not channel.listeners:
                self._channels.pop(key, None)
                await channel.close()

    async def close(self) -> None:
        """End all channels; their tabs come again, or poll."""
        channels, self._channels = [*self._channels.values()], {}
        for channel in channels:
            await channel.close()

    @property
    def channels(self) -> int:
        """How many are read now."""
        return len(self._channels)


class _Channel:
    """What one page shows in one language."""

    def __init__(self, reading: Reading, tick_s: float) -> None:
        self._reading, self._tick_s = reading, tick_s
        self._now: dict[str, str] = {}
        self._is_lost = False
        self._is_closed = False
        self._changed = asyncio.Event()
        self._task = asyncio.create_task(self._run())
        self.listeners = 0

    async def follow(self) -> AsyncGenerator[bytes]:
        """Changes from the first reading on."""
        sent: dict[str, str] = {}
        was_lost, until = False, time.monotonic() + _LONGEST_S
        yield b"retry: 3000\n\n"
        while not self._is_closed and time.monotonic() < until:
            waiting, news = (
                self._changed,
                {name: text for name, text in self._now.items() if sent.get(name) != text},
            )
            if self._is_lost != was_lost:
                was_lost = self._is_lost
                yield b"event: lost\ndata: {}\n\n" if was_lost else b"event: found\ndata: {}\n\n"
            if news:
                sent |= news
                yield b"data: " + _json(news) + b"\n\n"
            try:
                async with asyncio.timeout(_ALIVE_S):
                    await waiting.wait()
            except TimeoutError:
                yield b": alive\n\n"

    async def _run(self) -> None:
        while True:
            began = time.monotonic()
            try:
                found = dict(await self._reading())
                has_changed = found != self._now or self._is_lost
                self._now, self._is_lost = found, False
            except (FaenaError, OSError):
                has_changed, self._is_lost = not self._is_lost, True
            except Exception:  # noqa: BLE001 - a fault of one reading must not end the channel
                _log.exception("a page that is open could not be read")
                has_changed, self._is_lost = not self._is_lost, True
            if has_changed:
                self._tell()
            await asyncio.sleep(max(0.1, self._tick_s - (time.monotonic() - began)))

    def _tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def close(self) -> None:
        """Stop reading, and end those who follow."""
        self._is_closed = True
        self._tell()
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
