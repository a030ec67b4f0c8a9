"""The open links to one server, most recently used first.

Last in, first out: under light load, one warm socket does all the work. A link that is closed, or
still has a request in flight, is never lent again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from faena.engine.wire.link import Link


class Pool:
    """Lends links, at most `limit` at a time; further callers queue in order."""

    def __init__(self, dial: Callable[[float], Awaitable[Link]], limit: int) -> None:
        self._dial = dial
        self._free = limit
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._idle: list[Link] = []
        self._lent: set[Link] = set()
        self._dialing: set[asyncio.Future[Link]] = set()
        self._is_closed = False

    def at_hand(self) -> Link | None:
        """A link, if one is idle and no other caller waits; pair it with `give`."""
        if not self._free or (link := self._pop()) is None:
            return None
        self._free -= 1
        self._lent.add(link)
        return link

    async def take(self, timeout_s: float) -> Link:
        """A link ready for one request; pair it with `give`, whatever happens."""
        if self._free:
            self._free -= 1
        else:
            await self._queue(timeout_s)
        try:
            link = self._pop() or await self._open(timeout_s)
        except BaseException:
            self._release()
            raise
        self._lent.add(link)
        return link

    def give(self, link: Link) -> None:
        """Return a link; one that broke is forgotten."""
        self._lent.discard(link)
        if self._is_closed:
            link.close()
        elif link.is_open:
            self._idle.append(link)
        self._release()

    def drop_idle(self) -> None:
        """Close idle links: after one socket died, the others are probably dead as well."""
        for link in self._idle:
            link.close()
        self._idle.clear()

    def close(self) -> None:
        """Close every link; requests in flight, and those that wait for a link to be opened, end
        with ConnectionError."""
        self._is_closed = True
        self.drop_idle()
        for dialing in tuple(self._dialing):
            dialing.cancel()
        for link in tuple(self._lent):
            link.close()

    async def _open(self, timeout_s: float) -> Link:
        """Open a link; a network that has lost its packets keeps nobody waiting after `close`."""
        caller = asyncio.current_task()
        known = caller.cancelling() if caller else 0
        dialing = asyncio.ensure_future(self._dial(timeout_s))
        self._dialing.add(dialing)
        try:
            return await dialing
        except asyncio.CancelledError:
            if caller and caller.cancelling() > known:
                raise
            raise ConnectionError("the connections have been dropped by this program") from None
        finally:
            self._dialing.discard(dialing)

    async def _queue(self, timeout_s: float) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(timeout_s):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():  # given to somebody who had just given up
                self._release()
            if isinstance(error, TimeoutError):
                raise TimeoutError("no connection was free") from None
            raise

    def _release(self) -> None:
        """The turn goes to the first who still waits for it."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _pop(self) -> Link | None:
        while self._idle:
            link = self._idle.pop()
            if link.is_open:
                return link
        return None
