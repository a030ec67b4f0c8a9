"""Hears what happens to upstreams, and has the calls of this process obey at once.

A message may be lost, and nothing depends on it: permits that were granted in advance are good for
a few milliseconds only, and what is closed opens by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from faena.engine import Engine
from faena.engine.calls import resilience
from faena.engine.wire.subscription import Subscription
from faena.resilience.gate import Gate

_CLOSING: Final = frozenset({"open", "rate_limited", "panic"})
_OPENING: Final = frozenset({"half_open", "recovering", "closed", "panic_ended", "forgotten"})
_ENDED: Final = frozenset({"open", "panic"})
"""What these changes end; the pause that an upstream asked for goes on."""
_LONGEST_PANIC_US: Final = 5_000_000
"""After this a call asks the server again: that a panic has ended may be lost."""


class Change(NamedTuple):
    """What has happened to an upstream."""

    upstream: str
    tenant: str
    """Whose calls it is about; empty for all."""
    state: str
    """A state of the breaker, rate_limited, panic, panic_ended or forgotten."""
    wait_us: int
    """How long it lasts unless something happens before, if that is known; else 0."""


class UpstreamPush:
    """Listens for one event loop, from its first call on."""

    def __init__(
        self, engine: Engine, gate: Gate, settings: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """`settings` are those of the program's upstreams; more may be declared later."""
        self._engine, self.gate, self._settings = engine, gate, settings
        self._declared: set[str] = set()
        self._listening: asyncio.Future[Subscription] | None = None
        self.listeners: list[Callable[[Change], None]] = []
        """Told of all that is heard."""

    async def start(self) -> None:
        """Tell the server what the program declares, and listen; the first time only."""
        if self._listening is None:
            hears = self._engine.listen(upstreams=self._hear)
            self._listening = asyncio.ensure_future(hears)
        if not self._listening.done():
            await asyncio.shield(self._listening)
        if len(self._declared) < len(self._settings):
            new = {name: one for name, one in self._settings.items() if name not in self._declared}
            await resilience.declare(self._engine, new)
            self._declared |= new.keys()

    async def close(self) -> None:
        """Report the last calls, and stop listening."""
        await self.gate.finish()
        if self._listening is not None:
            await (await self._listening).close()
            self._listening = None

    def _hear(self, _shard: str, message: str) -> None:
        event, _, rest = message.partition(" ")
        wait_us, _, scope = rest.partition(" ")
        kind, _, state = event.partition("_")
        if kind == "upstream" and wait_us.isdecimal():
            name, _, tenant = scope.partition("/@")
            change = Change(name, tenant, state, int(wait_us))
            self._obey(change)
            for listener in self.listeners:
                listener(change)

    def _obey(self, change: Change) -> None:
        upstream, tenant, state, wait_us = change
        if state == "panic":
            wait_us = min(wait_us or _LONGEST_PANIC_US, _LONGEST_PANIC_US)
        if state in _CLOSING:
            self.gate.close(upstream, tenant, wait_us, state)
        elif state in _OPENING:
            ended = _CLOSING if state == "forgotten" else _ENDED
            self.gate.closings.open(upstream, tenant, ended)
        self.gate.drop_advance(upstream, tenant)
