"""Has the server close breakers and end panics in time, although no call is made.

A breaker that has recovered closes with the next call; without one, its event and the state of its
features would be late. Every worker hears when a recovery or a panic will be over, and sends one
call then. The first call ends it, the others hear that and send none. A message may be lost, and
some recoveries begin before a worker starts: so each worker also looks now and then. If no worker
runs, nothing breaks, because the next call decides by the instants that are stored.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Sequence
from typing import Final

from faena.engine import Engine
from faena.engine.calls import resilience
from faena.errors import FaenaError
from faena.resilience.push import Change

_SPREAD_S: Final = 0.5
"""Workers wait up to this much longer, each its own time, so that one call is enough."""
_LOOK_S: Final = 60.0
_AFTER_ERROR_S: Final = 5.0
_MOST_PAGES: Final = 20
"""Of breakers that are not closed, in one look."""
_AT_ONCE: Final = 100
_MOST_DUE: Final = 10_000
_PENDING: Final = frozenset({"recovering", "panic"})
_ENDS: Final = {"closed": "recovering", "open": "recovering", "panic_ended": "panic"}

_log = logging.getLogger("faena.worker")


class BreakerTimer:
    """The timer of one worker."""

    def __init__(self, engine: Engine, names: Sequence[str]) -> None:
        """`names` are the upstreams whose panics it looks after from its start on."""
        self._engine, self._names = engine, names
        self._due: dict[tuple[str, str], float] = {}
        self._look_at = 0.0
        self._cursor = "0"
        self._woken = asyncio.Event()

    def hear(self, change: Change) -> None:
        """Something has happened to an upstream."""
        scope = f"{change.upstream}/@{change.tenant}" if change.tenant else change.upstream
        if change.state in _PENDING and change.wait_us:
            self._note(scope, change.state, change.wait_us)
        elif change.state in _ENDS:
            self._due.pop((scope, _ENDS[change.state]), None)

    async def run(self) -> None:
        """Send what is due, until cancelled."""
        while True:
            self._woken.clear()
            try:
                await self._turn()
            except FaenaError as error:
                _log.warning("breakers that have recovered are closed later: %s", error)
                self._look_at = time.monotonic() + _AFTER_ERROR_S
            wait_s = min([self._look_at, *self._due.values()]) - time.monotonic()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, wait_s)):
                    await self._woken.wait()

    async def _turn(self) -> None:
        now = time.monotonic()
        due = [key for key, at in self._due.items() if at <= now][:_AT_ONCE]
        for key in due:
            del self._due[key]
        if due:
            await self._sweep([scope for scope, _ in due])
        if self._look_at <= now:
            self._look_at = now + _LOOK_S * (1 + random.random() / 10)
            await self._look()

    async def _look(self) -> None:
        """What was under way before, or was not heard; and a part of those in trouble."""
        for i in range(_AT_ONCE, len(self._names), _AT_ONCE):
            await self._sweep(self._names[i : i + _AT_ONCE])
        self._cursor = await self._sweep(self._names[:_AT_ONCE], self._cursor)
        for _ in range(1, _MOST_PAGES):
            if self._cursor == "0":
                break
            self._cursor = await self._sweep((), self._cursor)

    async def _sweep(self, scopes: Sequence[str], cursor: str = "") -> str:
        swept = await resilience.sweep(self._engine, scopes, cursor)
        for one in swept.pending:
            self._note(one.scope, one.what, one.wait_us)
        return swept.cursor

    def _note(self, scope: str, what: str, wait_us: int) -> None:
        if len(self._due) < _MOST_DUE:
            at = time.monotonic() + wait_us / 1e6 + random.random() * _SPREAD_S
            self._due[scope, what] = at
            self._woken.set()
