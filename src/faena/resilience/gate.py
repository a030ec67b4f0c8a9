"""Where the calls of a process ask for permission, and report how they ended.

One request is on its way at a time. What is asked meanwhile, and what has ended meanwhile, travels
in the next one: a worker that claims a batch of jobs pays one round trip for all of them, whatever
upstreams they need. While calls go well, a grant holds some permits in advance, so most batches
pay none. A report that no question follows is sent by itself, shortly after.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from faena.engine import Engine
from faena.engine.calls import resilience
from faena.engine.calls.resilience import (
    GOOD_FOR_US,
    Admitted,
    Ask,
    Grant,
    Report,
    Settled,
    Turned,
    Undeclared,
)
from faena.errors import FaenaError, InternalError, StoreRejected, StoreUnavailable
from faena.resilience.call_group import CallGroup, CallGroups, Counter, Permits, Service
from faena.resilience.closing import Closings
from faena.resilience.question import Asked, Granted, Wanted, refuse

_GOOD_FOR_S: Final = GOOD_FOR_US / 1e6
_LINGER_S: Final = 0.02
"""How long a report waits for a question to travel with."""
_LONGEST_PAUSE_S: Final = 5.0
"""The most between two tries while the broker refuses reports."""
_CLOSE_WITHIN_S: Final = 2.0
_LOST: Final = 3
_MARGIN_US: Final = 10_000_000
"""How much longer than its calls a holder of permits may take before it is taken for dead."""
_CLOSING: Final = frozenset({"open", "rate_limited"})
"""Refusals that hold for what was granted before, too."""
_MOST_COUNTERS: Final = 10_000
_LONGEST_TIMER_S: Final = 86_400.0
_MOST_ADVANCE: Final = 10_000
_REFRESH_S: Final = 0.02
"""How long before permits in advance lapse the next ones are asked for: the answer may have to wait
for other calls at the server."""
_AT_ONCE: Final = 500
"""The most that one call asks for, and reports of."""

_log = logging.getLogger("faena.resilience")


class _Unsent(NamedTuple):
    """A call that is on its way, or whose answer never came."""

    turn: str
    reports: Sequence[Report]
    settled: Sequence[Settled]


class Gate:
    """Asks and reports for one event loop."""

    def __init__(
        self, engine: Engine, settings: Mapping[str, Mapping[str, Any]], calls: Callable[[], str]
    ) -> None:
        """`settings` are those of all upstreams of the program; `calls` gives names to calls."""
        self.engine = self._engine = engine
        self._settings = settings
        self._declared_settings: Mapping[str, Mapping[str, Any]] = {}
        self._calls = calls
        self._caller = calls()
        self._groups: dict[tuple[tuple[str, ...], str], CallGroups] = {}
        self._counters: dict[tuple[str, str], Counter] = {}
        self._noted: list[Counter] = []
        self._ended: list[Permits] = []
        self._unsettled: list[Settled] = []
        self._unsent: _Unsent | None = None
        self.closings = Closings()
        """Upstreams that take no calls now, as far as this process knows."""
        self._asked: list[Asked] = []
        self._sending: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._failures = 0
        """Sends in a row that have failed."""
        self.loop = asyncio.get_running_loop()
        self.listeners: list[Callable[[Sequence[Turned]], None]] = []
        """Told of breakers that a call of this process has turned."""

    # -- asking -------------------------------------------------------------------------------

    def group(self, services: Sequence[Service], tenant: str, task: str = "") -> CallGroup:
        """The calls of a tenant to these upstreams; `task` is the one whose costs they are."""
        return self.groups(services, task).of(tenant)

    def groups(self, services: Sequence[Service], task: str = "") -> CallGroups:
        """The same of all tenants."""
        names = tuple(one.name for one in services)
        groups = self._groups.get((names, task))
        if groups is None:

            def make(tenant: str) -> CallGroup:
                counters = [self._counter(one, tenant) for one in services]
                return CallGroup(self, services, tenant, task, counters)

            groups = self._groups[names, task] = CallGroups(names, make)
        return groups

    async def admit(self, wanted: Sequence[Wanted]) -> list[Granted]:
        """An answer for each."""
        if len(wanted) > _AT_ONCE:
            halves = wanted[:_AT_ONCE], wanted[_AT_ONCE:]
            return [*await self.admit(halves[0]), *await self.admit(halves[1])]
        answered: asyncio.Future[list[Granted]] = self.loop.create_future()
        self._asked.append(Asked(wanted, answered))
        self._send_soon()
        return await answered

    def refresh(self, group: CallGroup, number: int, now: float) -> None:
        """Ask in time for the next permits in advance, if those that are left will not do for
        another `number` of calls, so that these need not wait for the answer."""
        permits = group.permits
        is_short = permits.left < number or now > permits.good_until - _REFRESH_S
        if group.is_refreshing or not is_short:
            return
        group.is_refreshing = True
        answered: asyncio.Future[list[Granted]] = self.loop.create_future()
        answered.add_done_callback(group.refreshed)
        self._asked.append(Asked([Wanted(group, 0)], answered))
        self._send_soon()

    def close(self, upstream: str, tenant: str, wait_us: int, reason: str) -> None:
        """Begin no call for some time, whatever was granted: of a tenant, or of all without one."""
        wait_s = wait_us / 1e6
        if self.closings.close(upstream, tenant, reason, time.monotonic() + wait_s):
            self.drop_advance(upstream, tenant)
            self.loop.call_later(min(wait_s, _LONGEST_TIMER_S), self.closings.forget_ended)

    def drop_advance(self, upstream: str, tenant: str) -> None:
        """Use no permits that were granted in advance: of a tenant, or of all without one."""
        for groups in [one for one in self._groups.values() if upstream in one.names]:
            for group in groups.by_tenant.values():
                if tenant in {"", group.tenant}:
                    group.drop()

    def forget(self) -> None:
        """Have every call ask; in tests, whose clock is another than that of what is closed."""
        self.closings.clear()
        for group in [one for each in self._groups.values() for one in each.by_tenant.values()]:
            group.drop()

    async def settle(self, settled: Settled) -> None:
        """Tell at once what calls have cost."""
        self._unsettled.append(settled)
        await self.flush()

    # -- reporting ----------------------------------------------------------------------------

    def note(self, counter: Counter) -> None:
        """See to it that a counter is reported with the next question, or soon."""
        counter.is_noted = True
        self._noted.append(counter)
        self._send_later()

    def note_ended(self, permits: Permits) -> None:
        """The same for calls of a grant."""
        permits.is_noted = True
        self._ended.append(permits)
        self._send_later()

    def hurry(self) -> None:
        """Report at once, for other processes must know."""
        self._send_soon()

    async def flush(self) -> None:
        """Send what is still to be reported."""
        while self._has_news() or self._sending:
            self._send_soon()
            if self._sending:
                await asyncio.wait([self._sending])
            if self._failures:
                await asyncio.sleep(self._pause_s())

    async def finish(self) -> None:
        """Send what is still to be reported, if that can be done soon."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_WITHIN_S):
                await self.flush()
        if self._timer is not None:
            self._timer.cancel()

    def _counter(self, service: Service, tenant: str) -> Counter:
        """One for each breaker: tenants that share it are reported together."""
        whose = service.breaker_of(tenant)
        counter = self._counters.get((service.name, whose))
        if counter is None:
            if len(self._counters) >= _MOST_COUNTERS:  # tenants come and go
                self._counters = {key: one for key, one in self._counters.items() if one.is_noted}
            counter = self._counters[service.name, whose] = Counter(self, service, whose)
        return counter

    # -- sending ------------------------------------------------------------------------------

    def _has_news(self) -> bool:
        return bool(self._noted or self._ended or self._unsettled or self._unsent)

    def _send_later(self) -> None:
        if self._sending is None and self._timer is None:
            self._timer = self.loop.call_later(self._pause_s(), self._send_soon)

    def _pause_s(self) -> float:
        return min(_LINGER_S * 2 ** min(self._failures, 10), _LONGEST_PAUSE_S)

    def _send_soon(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._sending is None and (self._asked or self._has_news()):
            self._sending = asyncio.create_task(self._send_all())

    async def _send_all(self) -> None:
        try:
            await self._send()
            while self._asked or any(one.wait_us for one in self._noted):
                await self._send()
        finally:
            self._sending = None
            if self._has_news():
                self._send_later()

    async def _send(self) -> None:
        asked = self._take_asked()
        try:
            await self._send_again()
            news = self._take_news()
            if not (asked or any(news)):
                return
            wanted = [each for one in asked for each in one.wanted]
            sent, stem = time.monotonic(), self._calls()
            asks = [self._ask(each, f"{stem}.{i}", sent) for i, each in enumerate(wanted)]
            self._unsent = _Unsent(self._calls(), *news)
            grants, turned = await self._declared(self._unsent, asks)
            self._unsent = None
            answers = [*map(self._granted, wanted, asks, grants, [sent] * len(grants))]
        except Exception as error:  # noqa: BLE001 - who asked is told; `_failed` decides on the rest
            refuse(asked, error)
            self._failed(error)
            return
        self._failures = 0
        for one in asked:
            answer, answers = answers[: len(one.wanted)], answers[len(one.wanted) :]
            one.answer(answer)
        for listener in self.listeners if turned else ():
            listener(turned)

    def _failed(self, error: Exception) -> None:
        """A broker that cannot be reached, or refuses for now, is asked again, less and less often.
        What no script takes would keep all later reports back: it is dropped."""
        self._failures += 1
        if isinstance(error, StoreUnavailable | StoreRejected):
            if self._failures & (self._failures - 1) == 0:  # the 1st, 2nd, 4th, 8th …
                _log.warning("reports of calls to upstreams are sent again later: %s", error)
            return
        self._unsent = None
        _log.error("reports of calls to upstreams are dropped: %s", error)
        if not isinstance(error, FaenaError):
            raise error

    async def _send_again(self) -> None:
        """Send what may have arrived, or not, as the same call: it counts once."""
        if self._unsent is not None:
            _, turned = await self._declared(self._unsent, ())
            self._unsent = None
            for listener in self.listeners if turned else ():
                listener(turned)

    def _take_asked(self) -> list[Asked]:
        """What is to be asked for now; one script call answers so many."""
        open_ones = [one for one in self._asked if not one.answer_from_advance()]
        number, taken = 0, 0
        for one in open_ones:
            number += len(one.wanted)
            if taken and number > _AT_ONCE:
                break
            taken += 1
        self._asked = open_ones[taken:]
        return open_ones[:taken]

    def _take_news(self) -> tuple[list[Report], list[Settled]]:
        ended, self._ended = self._ended[:_AT_ONCE], self._ended[_AT_ONCE:]
        settled, self._unsettled = self._unsettled, []
        settled += [one for each in ended if (one := each.take_ended()) is not None]
        noted, self._noted = self._noted[:_AT_ONCE], self._noted[_AT_ONCE:]
        return [one.take() for one in noted], settled

    def _ask(self, wanted: Wanted, stem: str, now: float) -> Ask:
        group, number = wanted.group, wanted.number
        more = 0
        if wanted.estimate is None:
            more = group.wanted(number, now, _GOOD_FOR_S, _MOST_ADVANCE)
        estimates: Sequence[int] = () if wanted.estimate is None else [wanted.estimate]
        if group.is_priced and not estimates:
            estimates = [one.estimate() for one in group.services]
        group.lasting_us = max(group.lasting_us, wanted.lasting_us)
        lasting_us = group.lasting_us + _MARGIN_US
        return Ask(group.names, group.tenant, number, stem, more, estimates, lasting_us)

    async def _declared(self, news: _Unsent, asks: Sequence[Ask]) -> Admitted:
        if self._declared_settings != self._settings:
            await self._declare(self._settings)
        said = self._engine, self._caller, news.turn, news.reports
        for _ in range(_LOST):
            try:
                return await resilience.admit(*said, asks, news.settled)
            except Undeclared:  # the server has lost its data
                await self._declare(self._settings)
        raise InternalError("upstreams are forgotten as soon as they are declared")

    async def _declare(self, settings: Mapping[str, Mapping[str, Any]]) -> None:
        declared = dict(settings)
        await resilience.declare(self._engine, declared)
        self._declared_settings = declared

    def _granted(self, wanted: Wanted, ask: Ask, grant: Grant, sent: float) -> Granted:
        group = wanted.group
        advance = grant.advance if group.drops == group.drops_when_asked else 0
        good_until, (is_probe, is_soft) = sent + _GOOD_FOR_S, (grant.is_probe, grant.is_soft)
        permits = Permits(
            group,
            grant.advance,
            good_until,
            ask.stem,
            ask.estimates,
            lapses_at=sent + ask.lasting_us / 1e6,
            is_probe=is_probe,
            is_soft=is_soft,
        )
        if wanted.estimate is None:
            group.permits.drop()
            group.permits = permits
        if not advance:
            permits.drop()
        elif ask.estimates:
            self.loop.call_later(_GOOD_FOR_S, permits.drop)  # others may use the money
        if grant.reason in _CLOSING:
            service = group.services[group.names.index(grant.upstream)]
            whose = service.breaker_of(group.tenant)
            self.close(service.name, whose, grant.wait_us, grant.reason)
        return Granted(permits, grant)
