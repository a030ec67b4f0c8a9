"""One call to an upstream: `async with afip.call(): …`, or `with afip.call(): …` in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

from faena.errors import ConfigError
from faena.resilience.permits import CURRENT, Permit, mark
from faena.resilience.upstream_options import added, check_spent
from faena.values.duration import describe


class UpstreamCall:
    """Asks for a permit when it is entered, and reports when it is left how the call went."""

    def __init__(
        self,
        permit: Callable[[], Awaitable[Permit]],
        permit_in_thread: Callable[[], Permit],
        timeout_s: float,
        cost: Callable[[Mapping[str, int]], int],
        upstream: str,
        span: Callable[[str], AbstractContextManager[object]],
    ) -> None:
        """`cost` is what a call costs that uses so much of each item; `upstream` is the name of
        what is called; `span` is around the call once it is permitted."""
        self._span = span
        self._upstream = upstream
        self._ask, self._ask_in_thread = permit, permit_in_thread
        self._cost = cost
        self._timeout_s = timeout_s
        self._timeout: asyncio.Timeout
        self._made: Permit | None = None

    @property
    def is_frugal(self) -> bool:
        """Whether so much of a budget is used up that a cheaper call should be made."""
        return self._permit.is_frugal

    def spend(self, used: Mapping[str, int] | None = None, /, **more: int) -> None:
        """Say what the call has used, as `spend(tokens=812)` or `spend({"gpt-4.input": 812})`; if
        nothing is said, the estimate counts."""
        permit = self._permit
        all_used = added(permit.used, check_spent(used, more))
        permit.spent, permit.used = self._cost(all_used), all_used

    @property
    def _permit(self) -> Permit:
        if self._made is None:
            raise ConfigError("a call must be entered first: `async with afip.call() as call:`")
        return self._made

    def _refuse_twice(self) -> None:
        if self._made is not None:
            raise ConfigError("a call must be made once: write afip.call() for each")

    async def __aenter__(self) -> Self:
        self._refuse_twice()
        made = await self._ask()
        if self._made is not None:
            made.drop()
        self._refuse_twice()
        self._made = made
        self._around = self._span(self._upstream)
        self._around.__enter__()
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
            within = describe(round(self._timeout_s * 1e6))
            late.args = (f"upstream {self._upstream} did not answer within {within}",)
            self._around.__exit__(TimeoutError, late, late.__traceback__)
            mark(late, self._permit.end(late))
            raise
        self._around.__exit__(kind, error, traceback)
        held = CURRENT.get()
        is_late = isinstance(error, asyncio.CancelledError) and held and held.is_timed_out
        mark(error, self._permit.end(TimeoutError() if is_late else error))

    def __enter__(self) -> Self:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self._refuse_twice()
            self._made = self._ask_in_thread()
            self._around = self._span(self._upstream)
            self._around.__enter__()
            return self
        raise ConfigError("a call must be made with `async with` inside an event loop, got `with`")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._around.__exit__(kind, error, traceback)
        mark(error, self._permit.end_in_thread(error))
