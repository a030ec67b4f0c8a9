"""Where the calls of a process ask for permission, and report how they ended.

One request is on its way at a time. What is asked meanwhile, and what has ended meanwhile, travels
in the next one: a worker that claims a batch of jobs pays one round trip for all of them, whatever
upstreams they need. While calls go well, a grant holds some permits in advance, so most batches
pay none. A report that no question follows is sent by itself, shortly after.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from faena.engine import Engine
from faena.engine.calls import resilience
from faena.engine.calls.resilience import GOOD_FOR_US, Admitted, Ask, Grant, Turned, Undeclared
from faena.errors import FaenaError, InternalError
from faena.resilience.permits import CallGroup, Counter, Permits, Service

_GOOD_FOR_S: Final = GOOD_FOR_US / 1e6
_LINGER_S: Final = 0.02
"""How long a report waits for a question to travel with."""
_LOST: Final = 3
_CLOSING: Final = frozenset({"open", "rate_limited"})
"""Refusals that hold for what was granted before, too."""
_MOST_GROUPS: Final = 10_000
_MOST_ADVANCE: Final = 2_000

_log = logging.getLogger("faena.resilience")


class Wanted(NamedTuple):
    """A number of calls of a group."""

    group: CallGroup
    number: int


class Granted(NamedTuple):
    """The answer: how many of them may begin, with what, and what refused the rest."""

    permits: Permits
    grant: Grant


class _Asked(NamedTuple):
    wanted: Sequence[Wanted]
    answered: asyncio.Future[list[Granted]]


class Gate:
    """Asks and reports for one event loop."""

    def __init__(
        self, engine: Engine, settings: Mapping[str, Mapping[str, Any]], calls: Callable[[], str]
    ) -> None:
        """`settings` are those of all upstreams of the program; `calls` gives names to calls."""
        self.engine = self._engine = engine
        self._settings = settings
        self._calls = calls
        self._caller = calls()
        self._groups: dict[tuple[tuple[str, ...], str], CallGroup] = {}
        self._counters: dict[tuple[str, str], Counter] = {}
        self._noted: list[Counter] = []
        self._asked: list[_Asked] = []
        self._sending: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.loop = asyncio.get_running_loop()
        self.listeners: list[Callable[[Sequence[Turned]], None]] = []
        """Told of breakers that a call of this process has turned."""

    # -- asking -------------------------------------------------------------------------------

    def group(self, services: Sequence[Service], tenant: str) -> CallGroup:
        """The calls of a tenant to these upstreams."""
        key = tuple(one.name for one in services), tenant
        group = self._groups.get(key)
        if group is None:
            self._forget_some()
            counters = [self._counter(one, tenant) for one in services]
            group = self._groups[key] = CallGroup(services, tenant, counters)
        return group

    async def admit(self, wanted: Sequence[Wanted]) -> list[Granted]:
        """An answer for each."""
        answered: asyncio.Future[list[Granted]] = self.loop.create_future()
        self._asked.append(_Asked(wanted, answered))
        self._send_soon()
        return await answered

    def close(self, service: Service, tenant: str, wait_us: int, reason: str) -> None:
        """Begin no call for some time, whatever was granted: of the tenant, or of all."""
        until, upstream = time.monotonic() + wait_us / 1e6, service.name
        is_tenants = service.is_tenants(reason, tenant)
        for group in self._groups.values():
            if upstream in group.names and (group.tenant == tenant or not is_tenants):
                group.drop()
                if until > group.closed_until:
                    group.closed_until, group.closed_for = until, (upstream, reason)

    def groups_of(self, upstream: str, tenant: str) -> list[CallGroup]:
        """The calls to an upstream: of one tenant, or of all."""
        groups = [one for one in self._groups.values() if upstream in one.names]
        return [one for one in groups if tenant in {"", one.tenant}]

    # -- reporting ----------------------------------------------------------------------------

    def note(self, counter: Counter) -> None:
        """See to it that a counter is reported with the next question, or soon."""
        counter.is_noted = True
        self._noted.append(counter)
        if self._sending is None and self._timer is None:
            self._timer = self.loop.call_later(_LINGER_S, self._send_soon)

    def hurry(self) -> None:
        """Report at once, for other processes must know."""
        self._send_soon()

    async def flush(self) -> None:
        """Send what is still to be reported."""
        while self._noted or self._sending:
            self._send_soon()
            if self._sending:
                await asyncio.wait([self._sending])

    def _counter(self, service: Service, tenant: str) -> Counter:
        counter = self._counters.get((service.name, tenant))
        if counter is None:
            counter = self._counters[service.name, tenant] = Counter(self, service, tenant)
        return counter

    def _forget_some(self) -> None:
        """Tenants come and go; what they have left is not worth keeping."""
        if len(self._groups) >= _MOST_GROUPS:
            now = time.monotonic()
            kept = {k: g for k, g in self._groups.items() if not g.tenant or g.closed_until > now}
            self._groups = kept
            self._counters = {key: one for key, one in self._counters.items() if one.is_noted}

    # -- sending ------------------------------------------------------------------------------

    def _send_soon(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._sending is None and (self._asked or self._noted):
            self._sending = asyncio.create_task(self._send_all())

    async def _send_all(self) -> None:
        try:
            await self._send()
            while self._asked or any(one.wait_us for one in self._noted):
                await self._send()
        finally:
            self._sending = None
            if self._noted:
                self._timer = self.loop.call_later(_LINGER_S, self._send_soon)

    async def _send(self) -> None:
        asked = [one for one in self._asked if not _answer_from_advance(one)]
        self._asked = []
        if not asked and not self._noted:
            return
        noted, self._noted = self._noted, []
        reports = [one.take() for one in noted]
        wanted = [each for one in asked for each in one.wanted]
        sent, stem = time.monotonic(), self._calls()
        asks = [self._ask(each, f"{stem}.{i}", sent) for i, each in enumerate(wanted)]
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
        answers = map(self._granted, wanted, asks, grants, [sent] * len(grants))
        for one in asked:
            answer = [next(answers) for _ in one.wanted]
            if not one.answered.done():
                one.answered.set_result(answer)

    def _ask(self, wanted: Wanted, stem: str, now: float) -> Ask:
        group, number = wanted
        more = group.wanted(number, now, _GOOD_FOR_S, _MOST_ADVANCE)
        return Ask(group.names, group.tenant, number, stem, more)

    async def _declared(self, reports: Sequence[Any], asks: Sequence[Ask]) -> Admitted:
        for _ in range(_LOST):
            try:
                turn = self._calls()
                return await resilience.admit(self._engine, self._caller, turn, reports, asks)
            except Undeclared as error:
                known = {name: self._settings[name] for name in error.names}
                await resilience.declare(self._engine, known)
        raise InternalError("upstreams are forgotten as soon as they are declared")

    def _granted(self, wanted: Wanted, ask: Ask, grant: Grant, sent: float) -> Granted:
        group = wanted.group
        advance = grant.advance if group.drops == group.drops_when_asked else 0
        stem = ask.stem if grant.is_probe else ""
        group.permits = Permits(group, advance, sent + _GOOD_FOR_S, stem)
        if grant.reason in _CLOSING:
            service = group.services[group.names.index(grant.upstream)]
            self.close(service, group.tenant, grant.wait_us, grant.reason)
        return Granted(group.permits, grant)


def _answer_from_advance(asked: _Asked) -> bool:
    """Another question of the same groups may have brought enough permits meanwhile."""
    now = time.monotonic()
    if not all(group.has(number, now) for group, number in asked.wanted):
        return False
    if not asked.answered.done():
        asked.answered.set_result([_taken(group, number) for group, number in asked.wanted])
    return True


def _taken(group: CallGroup, number: int) -> Granted:
    group.permits.left -= number
    group.used += number
    return Granted(group.permits, Grant(number, False, "", "", 0))
