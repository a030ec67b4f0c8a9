"""An answer that is made once a second, however many clients ask for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_FRESH_S: Final = 1.0


class Recent(Generic[T]):
    """The last answer, and the one that is being made."""

    def __init__(self, make: Callable[[], Awaitable[T]]) -> None:
        self._make = make
        self._making: asyncio.Task[T] | None = None
        self._made: tuple[float, T] | None = None

    async def get(self) -> T:
        """One that was begun at most a second ago."""
        if self._made is not None and time.monotonic() - self._made[0] <= _FRESH_S:
            return self._made[1]
        if self._making is None:
            self._making = asyncio.create_task(self._begin())
            self._making.add_done_callback(self._ended)
        return await asyncio.shield(self._making)

    async def _begin(self) -> T:
        began = time.monotonic()
        found = await self._make()
        self._made = (began, found)
        return found

    def _ended(self, making: asyncio.Task[T]) -> None:
        self._making = None
        if not making.cancelled():
            making.exception()  # told to those who wait for it
