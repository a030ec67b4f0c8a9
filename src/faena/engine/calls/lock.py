"""A lock for one program at a time: a key with a TTL that its owner renews."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Final

from faena.engine.engine import Engine
from faena.errors import FaenaError

_LAST_WORD_S: Final = 1.0


class Lock:
    """One owner's lock on a name of a queue. The guarded work must be safe without it."""

    def __init__(
        self, engine: Engine, queue: str, name: str, *, owner: str, lease_s: float, every_s: float
    ) -> None:
        self._command = engine.command
        self._where = queue, name
        self._owner = owner
        self._lease_ms = round(lease_s * 1000)
        self._every_s = every_s
        self._said_at = float("-inf")

    async def take(self, *, by_force: bool = False) -> bool:
        """Take the lock; False if another owner has it, unless `by_force`."""
        only_free = () if by_force else ("NX",)
        until = time.monotonic()
        set_to = (*self._where, self._owner, *only_free, "PX", self._lease_ms)
        if await self._command("SET", *set_to) is None and not await self._renew():
            return False
        self._said_at = until
        return True

    async def _renew(self) -> bool:
        if await self._command("GET", *self._where) != self._owner.encode():
            return False
        return await self._command("PEXPIRE", *self._where, self._lease_ms) == 1

    async def keep(self) -> bool:
        """Renew the lock now and then; False if another owner has it."""
        return time.monotonic() - self._said_at <= self._every_s or await self.take()

    async def drop(self) -> None:
        """Release the lock for the next owner; if that fails, it expires."""
        with contextlib.suppress(FaenaError, TimeoutError):
            async with asyncio.timeout(_LAST_WORD_S):
                await self._drop()

    async def _drop(self) -> None:
        if await self._command("GET", *self._where) == self._owner.encode():
            await self._command("DEL", *self._where)
