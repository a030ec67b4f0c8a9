"""The open links to one server, most recently used first.

Last in, first out: under light load one warm socket does all the work and the others are free to
go. A link that is not clean (closed, or with a request still in flight) never comes back out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from faena.engine.link import Link


class Pool:
    """Lends links, at most `limit` at a time; further callers queue in order."""

    def __init__(self, dial: Callable[[float], Awaitable[Link]], limit: int) -> None:
        self._dial = dial
        self._slots = asyncio.Semaphore(limit)
        self._idle: list[Link] = []
        self._lent: set[Link] = set()
        self._is_closed = False

    async def take(self, timeout_s: float) -> Link:
        """A link ready for one request; pair it with `give`, whatever happens."""
        if self._slots.locked():
            await self._queue(timeout_s)
        else:
            await self._slots.acquire()
        try:
            link = self._pop() or await self._dial(timeout_s)
        except BaseException:
            self._slots.release()
            raise
        self._lent.add(link)
        return link

    def give(self, link: Link) -> None:
        """Return a link; one that broke is forgotten."""
        self._slots.release()
        self._lent.discard(link)
        if self._is_closed:
            link.close()
        elif link.is_open:
            self._idle.append(link)

    def drop_idle(self) -> None:
        """Close what is not in use: after one socket died its idle sisters are suspects too."""
        for link in self._idle:
            link.close()
        self._idle.clear()

    def close(self) -> None:
        """Close every link; requests in flight end with ConnectionError."""
        self._is_closed = True
        self.drop_idle()
        for link in tuple(self._lent):
            link.close()

    async def _queue(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._slots.acquire()
        except TimeoutError:
            raise TimeoutError(f"no connection was free within {timeout_s:g} s") from None

    def _pop(self) -> Link | None:
        while self._idle:
            link = self._idle.pop()
            if link.is_open:
                return link
        return None
