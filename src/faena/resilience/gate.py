"""Where the calls of a process ask for permission, and tell how they ended.

One request is on its way at a time. What is asked meanwhile, and what has ended meanwhile, travels
in the next one: a worker that claims a batch of jobs pays one round trip for all of them, whatever
upstreams they need. A report that no question follows is sent by itself, shortly after.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from faena.engine import Engine
from faena.engine.calls import resilience
from faena.engine.calls.resilience import Admitted, Ask, Grant, Report, Turned, Undeclared
from faena.errors import FaenaError, InternalError

_LINGER_S: Final = 0.02
"""How long a report waits for a question to travel with."""
_LOST: Final = 3

_log = logging.getLogger("faena.resilience")


class Tally:
    """Calls that have ended and are still to be reported."""

    __slots__ = ("calls", "failed", "probes", "slow", "wait_us")

    def __init__(self) -> None:
        self.calls = self.failed = self.slow = self.wait_us = 0
        self.probes: list[Any] = []

    def report(self, upstream: str, tenant: str) -> Report:
        """As it is sent."""
        counts = (self.calls, self.failed, self.slow, self.wait_us)
        return Report(upstream, tenant, *counts, self.probes)


class _Asked(NamedTuple):
    asks: Sequence[Ask]
    answered: asyncio.Future[list[Grant]]


class Gate:
    """Asks and reports for one event loop."""

    def __init__(
        self, engine: Engine, settings: Mapping[str, Mapping[str, Any]], calls: Callable[[], str]
    ) -> None:
        """`settings` are those of all upstreams of the program; `calls` gives names to calls."""
        self._engine = engine
        self._settings = settings
        self._calls = calls
        self._caller = calls()
        self._tallies: dict[tuple[str, str], Tally] = {}
        self._asked: list[_Asked] = []
        self._sending: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.listeners: list[Callable[[Sequence[Turned]], None]] = []
        """Told of breakers that a call of this process has turned."""

    def stem(self) -> str:
        """What the names of the next permits begin with."""
        return self._calls()

    async def admit(self, asks: Sequence[Ask]) -> list[Grant]:
        """A grant for each."""
        answered: asyncio.Future[list[Grant]] = asyncio.get_running_loop().create_future()
        self._asked.append(_Asked(asks, answered))
        self._send_soon()
        return await answered

    def tally(self, upstream: str, tenant: str) -> Tally:
        """Where to count a call that has ended; it is reported with the next question, or soon."""
        tally = self._tallies.get((upstream, tenant))
        if tally is None:
            tally = self._tallies[upstream, tenant] = Tally()
            if self._sending is None and self._timer is None:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(_LINGER_S, self._send_soon)
        return tally

    async def flush(self) -> None:
        """Send what is still to be told."""
        while self._tallies or self._sending:
            self._send_soon()
            if self._sending:
                await asyncio.wait([self._sending])

    def _send_soon(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._sending is None and (self._asked or self._tallies):
            self._sending = asyncio.create_task(self._send_all())

    async def _send_all(self) -> None:
        try:
            while self._asked or self._tallies:
                await self._send()
        finally:
            self._sending = None

    async def _send(self) -> None:
        asked, self._asked = self._asked, []
        tallies, self._tallies = self._tallies, {}
        reports = [one.report(*whose) for whose, one in tallies.items()]
        asks = [ask for one in asked for ask in one.asks]
        try:
            grants, turned = await self._declared(reports, asks)
        except FaenaError as error:
            _log.warning("%d reports of calls to upstreams were lost: %s", len(reports), error)
            for one in asked:
                if not one.answered.done():
                    one.answered.set_exception(error)
            return
        for listener in self.listeners if turned else ():
            listener(turned)
        at = 0
        for one in asked:
            if not one.answered.done():
                one.answered.set_result(grants[at : at + len(one.asks)])
            at += len(one.asks)

    async def _declared(self, reports: Sequence[Report], asks: Sequence[Ask]) -> Admitted:
        for _ in range(_LOST):
            try:
                turn = self._calls()
                return await resilience.admit(self._engine, self._caller, turn, reports, asks)
            except Undeclared as error:
                known = {name: self._settings[name] for name in error.names}
                await resilience.declare(self._engine, known)
        raise InternalError("upstreams are forgotten as soon as they are declared")
