"""Keeps channels subscribed through outages, for messages that may get lost.

Messages that are published while the link is down are lost, so subscribers also poll now and then.
The link is pinged, so that a silent peer is noticed although no reply is awaited.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

import hiredis

from faena.engine.wire.link import Link, pack
from faena.engine.wire.patience import pause_s
from faena.errors import StoreError

_PING_EVERY_S = 5.0
_PING = pack(("PING",))


class Subscription:
    """Hands every message of some channels to the function of each, until closed."""

    def __init__(
        self,
        on_message: Mapping[str, Callable[[bytes], None]],
        *,
        connect: Callable[[], Awaitable[Link]],
        jitter: Callable[[], float],
        ping_every_s: float = _PING_EVERY_S,
    ) -> None:
        self._channels = tuple(on_message)
        self._on_message = {name.encode(): hear for name, hear in on_message.items()}
        self._connect = connect
        self._jitter = jitter
        self._ping_every_s = ping_every_s
        self._loop = asyncio.get_running_loop()
        self._link: Link | None = None
        self._has_heard = False
        self.on_live: Callable[[], None] = lambda: None
        """Called when messages begin to arrive, at first and after every interruption."""
        self.tried = asyncio.Event()  # set once the first attempt to subscribe is over
        self._task = self._loop.create_task(self._keep())

    @property
    def is_live(self) -> bool:
        """True while messages would arrive."""
        return self._link is not None and self._link.is_open

    @property
    def is_closed(self) -> bool:
        return self._task.done()

    def reset(self) -> None:
        """Drop the connection; a new one follows."""
        if self._link is not None:
            self._link.close()

    async def close(self) -> None:
        """Stop listening."""
        self._task.cancel()
        await asyncio.wait([self._task])
        self.reset()

    async def _keep(self) -> None:
        failures = 0
        while True:
            try:
                await self._subscribe()
                failures = 0
                await self._stay()
            except (OSError, hiredis.ReplyError, StoreError):
                failures += 1
            finally:
                self.reset()
                self.tried.set()
            await asyncio.sleep(pause_s(failures + 1, self._jitter))

    async def _subscribe(self) -> None:
        link = await self._connect()
        link.on_push = self._hear
        wanted = pack(("SUBSCRIBE", *self._channels))
        for reply in await link.ask(wanted, len(self._channels), self._ping_every_s):
            if isinstance(reply, hiredis.ReplyError):
                link.close()
                raise reply
        self._link = link
        self.tried.set()
        self.on_live()

    async def _stay(self) -> None:
        """Return when the link ended, or when a ping went unanswered."""
        link = self._link
        assert link is not None  # noqa: S101  set by _subscribe
        self._has_heard = True
        while self._has_heard:
            self._has_heard = False
            link.send(_PING)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._ping_every_s):
                    await link.ended.wait()
                    return

    def _hear(self, push: Any) -> None:
        self._has_heard = True
        if isinstance(push, list) and push[0] == b"message":
            # Through the loop: what the function raises is not ours to swallow, nor to die of.
            self._loop.call_soon(self._on_message[push[1]], push[2])
