"""One call to an upstream: `async with afip.call(): …`, or `with afip.call(): …` in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Self

from faena.errors import ConfigError
from faena.resilience.permits import Permit, mark


class UpstreamCall:
    """Asks for a permit when it is entered, and reports when it is left how the call went."""

    def __init__(
        self,
        permit: Callable[[], Awaitable[Permit]],
        permit_in_thread: Callable[[], Permit],
        timeout_s: float,
        cost: Callable[[Mapping[str, int]], int],
    ) -> None:
        """`cost` is what so much of each item costs."""
        self._ask, self._ask_in_thread = permit, permit_in_thread
        self._cost = cost
        self._timeout_s = timeout_s
        self._timeout: asyncio.Timeout
        self._permit: Permit

    @property
    def is_frugal(self) -> bool:
        """Whether so much of a budget is used up that a cheaper call should be made."""
        return self._permit.is_frugal

    def spend(self, **used: int) -> None:
        """Say what the call has used, such as `spend(tokens=812)`; else the estimate counts.

        Items with other characters are given as `spend(**{"gpt-4.input": 812})`.
        """
        self._permit.spent = (self._permit.spent or 0) + self._cost(used)

    async def __aenter__(self) -> Self:
        self._permit = await self._ask()
        self._timeout = asyncio.timeout(self._timeout_s)
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await self._timeout.__aexit__(kind, error, traceback)
        except TimeoutError as late:
            mark(late, self._permit.end(late))
            raise
        mark(error, self._permit.end(error))

    def __enter__(self) -> Self:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self._permit = self._ask_in_thread()
            return self
        raise ConfigError("a call must be made with `async with` inside an event loop, got `with`")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        mark(error, self._permit.end_in_thread(error))
