"""Who drives a redrive: one at a time, until it has said nothing for some seconds."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Final

from faena.engine.calls.deadletter import DeskCalls
from faena.errors import FaenaError

LEASE_S: Final = 5.0
_SAY_EVERY_S: Final = 1.0
_LAST_WORD_S: Final = 1.0


class Overtaken(Exception):
    """Another drives by now."""


class RedriveLock:
    """One driver's hold on a redrive. Slices are safe without it; a rate over shards is not."""

    def __init__(
        self, calls: DeskCalls, queue: str, redrive: str, *, owner: str, lease_s: float = LEASE_S
    ) -> None:
        self._engine = calls.engine
        self._where = queue, f"redriver:{redrive}"
        self._owner = owner
        self._lease_ms = round(lease_s * 1000)
        self._every_s = min(_SAY_EVERY_S, lease_s / 4)
        self._said_at = float("-inf")

    async def take(self, *, by_force: bool = False) -> bool:
        """Be the one who drives, unless another is and must not be relieved."""
        command, owner = self._engine.command, self._owner
        only_free = () if by_force else ("NX",)
        until = time.monotonic()
        is_taken = await command("SET", *self._where, owner, *only_free, "PX", self._lease_ms)
        if is_taken is None:
            if await command("GET", *self._where) != owner.encode():
                return False
            await command("PEXPIRE", *self._where, self._lease_ms)
        self._said_at = until
        return True

    async def keep(self) -> None:
        """Say now and then that it is still held; raises Overtaken when it is not."""
        if time.monotonic() - self._said_at > self._every_s and not await self.take():
            raise Overtaken

    async def drop(self) -> None:
        """Let another go on at once; who cannot say so is relieved when the lease ends."""
        with contextlib.suppress(FaenaError, TimeoutError):
            await asyncio.wait_for(self._drop(), _LAST_WORD_S)

    async def _drop(self) -> None:
        if await self._engine.command("GET", *self._where) == self._owner.encode():
            await self._engine.command("DEL", *self._where)
