"""Permits to call upstreams, as they were granted, and the calls that use them.

Permits are granted for whole batches of jobs, and while all goes well some more in advance, which
a process may use within a few milliseconds. A call that a handler makes uses its job's permit,
without asking again. A handler that makes none is the call itself: its ending is what is reported.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol

from faena.engine.calls.resilience import BAD, GOOD, VOID, Report
from faena.outcomes import RateLimited, UpstreamUnavailable
from faena.resilience.sorting import Sorted


class Service(Protocol):
    """An upstream, as far as permits need it."""

    name: str
    slow_s: float | None
    """From how many seconds on a call is slow; None for never."""

    def sorts(self, error: BaseException) -> Sorted | None:
        """What an error says of it."""
        ...

    def is_tenants(self, reason: str, tenant: str) -> bool:
        """Whether a refusal is for the calls of one tenant only."""
        ...


class Reporter(Protocol):
    """Sends what is counted."""

    loop: asyncio.AbstractEventLoop

    def note(self, counter: Counter) -> None:
        """A counter that was empty counts again."""
        ...

    def hurry(self) -> None:
        """Report at once, for other processes must know."""
        ...

    def close(self, service: Service, tenant: str, wait_us: int, reason: str) -> None:
        """An upstream takes no calls for some time, of this tenant at least."""
        ...


class Counter:
    """Calls of one tenant to one upstream that have ended and are still to be reported."""

    __slots__ = (
        "_reporter",
        "_service",
        "_tenant",
        "calls",
        "failed",
        "is_noted",
        "loop",
        "probes",
        "slow",
        "wait_us",
    )

    def __init__(self, reporter: Reporter, service: Service, tenant: str) -> None:
        self._reporter, self._service, self._tenant = reporter, service, tenant
        self.loop = reporter.loop
        """Where it counts; other threads must not."""
        self.is_noted = False
        self._clear()

    def _clear(self) -> None:
        self.calls = self.failed = self.slow = self.wait_us = 0
        self.probes: list[Any] = []

    def note(self) -> None:
        """See to it that it is reported."""
        self._reporter.note(self)

    def add(self, how: int, *, is_slow: bool = False, wait_us: int = 0, probe: str = "") -> None:
        """One more call has ended, GOOD, BAD or VOID."""
        if how != VOID:
            self.calls += 1
            self.failed += how == BAD
            self.slow += is_slow
        if wait_us:
            self.wait_us = max(self.wait_us, wait_us)
            self._reporter.close(self._service, self._tenant, wait_us, "rate_limited")
        if probe:
            self.probes += (probe, how)
        if not self.is_noted:
            self.note()
        if wait_us:
            self._reporter.hurry()

    def take(self) -> Report:
        """What is to be reported; it is empty afterwards."""
        counts = (self.calls, self.failed, self.slow, self.wait_us)
        report = Report(self._service.name, self._tenant, *counts, self.probes)
        self.is_noted = False
        self._clear()
        return report


class CallGroup:
    """The calls of one tenant to the upstreams that a task names, in this process."""

    __slots__ = (
        "asked_at",
        "closed_for",
        "closed_until",
        "counters",
        "drops",
        "drops_when_asked",
        "has_slow",
        "names",
        "permits",
        "services",
        "tenant",
        "used",
    )

    def __init__(
        self, services: Sequence[Service], tenant: str, counters: Sequence[Counter]
    ) -> None:
        self.services, self.tenant, self.counters = services, tenant, counters
        self.names = [one.name for one in services]
        self.has_slow = any(one.slow_s is not None for one in services)
        self.permits = Permits(self, 0, 0.0)
        """Those that were granted last."""
        self.closed_until = 0.0
        """Until when no call may begin, whatever was granted before; of the monotonic clock."""
        self.closed_for: tuple[str, str] = ("", "")
        """The upstream that is closed, and why."""
        self.drops = self.drops_when_asked = 0
        """How often what was granted in advance was dropped, now and when it asked last."""
        self.asked_at = 0.0
        self.used = 0
        """How many permits were used since it asked."""

    def take(self, now: float) -> Permits | None:
        """A permit that was granted in advance, if one is left and still good."""
        permits = self.permits
        if permits.left and self.closed_until <= now < permits.good_until:
            permits.left -= 1
            self.used += 1
            return permits
        return None

    def has(self, number: int, now: float) -> bool:
        """Whether so many are left that were granted in advance."""
        return self.permits.left >= number and self.closed_until <= now < self.permits.good_until

    def drop(self) -> None:
        """Ask before the next call, whatever was granted in advance, or is being granted."""
        self.permits.left = 0
        self.drops += 1

    def wanted(self, number: int, now: float, within_s: float, most: int) -> int:
        """How many permits to ask for beyond `number`: what it used lately in `within_s`."""
        elapsed, used = now - self.asked_at, self.used
        self.asked_at, self.used, self.drops_when_asked = now, number, self.drops
        if not 0 < elapsed < 1:  # it has just asked, or has nothing to do
            self.used += used if elapsed == 0 else 0
            return 0
        return min(most, round(used / max(elapsed, within_s / 10) * within_s))


class Permits:
    """Those of one grant; each is for one call to each of its upstreams."""

    __slots__ = ("_stem", "good_until", "group", "left")

    def __init__(self, group: CallGroup, left: int, good_until: float, stem: str = "") -> None:
        """`stem` is what the names of probes begin with; empty for calls that are none."""
        self.group = group
        self.left = left
        """How many may still be used, which were granted in advance."""
        self.good_until = good_until
        self._stem = stem

    @property
    def is_probe(self) -> bool:
        """Whether its calls are probes of a half-open breaker."""
        return self._stem != ""

    def probe(self, number: int) -> str:
        """The name of one of them; empty where they are no probes."""
        return f"{self._stem}:{number}" if self._stem else ""


class Holder(Protocol):
    """Whose handler runs, with the permits it has."""

    permits: Permits | None
    probe: str
    """The name of its permit, if it is a probe."""
    called: set[str] | None
    """The upstreams it has called itself; None while it has called none."""
    started: float

    @property
    def tenant(self) -> str:
        """Whose job it is; empty for none's."""
        ...


CURRENT: ContextVar[Holder | None] = ContextVar("faena_permits", default=None)
"""The attempt whose handler runs here."""


class Permit:
    """One permitted call."""

    __slots__ = ("_counter", "_group", "_is_over", "_probe", "_service", "_started")

    def __init__(
        self, group: CallGroup, service: Service, probe: str = "", started: float | None = None
    ) -> None:
        self._group, self._service, self._probe = group, service, probe
        self._counter = group.counters[group.names.index(service.name)]
        self._started = time.monotonic() if started is None else started
        self._is_over = False

    def end(self, error: BaseException | None) -> Sorted | None:
        """Report how the call went, once; returns what its error means."""
        meaning = None if error is None else self._service.sorts(error)
        self.report(meaning, is_void=error is not None and meaning is None)
        return meaning

    def end_in_thread(self, error: BaseException | None) -> Sorted | None:
        """The same, in another thread than that of the event loop."""
        meaning = None if error is None else self._service.sorts(error)
        is_void = error is not None and meaning is None
        report = partial(self.report, meaning, is_void=is_void)
        with contextlib.suppress(RuntimeError):  # the loop was closed: the program ends
            self._counter.loop.call_soon_threadsafe(report)
        return meaning

    def drop(self) -> None:
        """No call was made."""
        self.report(None, is_void=True)

    def report(self, meaning: Sorted | None, *, is_void: bool = False) -> None:
        """Count its end, as what its error means has it."""
        if self._is_over:
            return
        self._is_over = True
        kind = None if meaning is None else meaning.kind
        if is_void:
            self._counter.add(VOID, probe=self._probe)
        elif meaning is not None and kind == "rate_limited":
            wait_us = _wait_us(meaning.retry_after)
            self._counter.add(VOID, wait_us=wait_us, probe=self._probe)
        else:
            slow_s = self._service.slow_s
            is_slow = slow_s is not None and time.monotonic() - self._started >= slow_s
            how = GOOD if kind in {None, "permanent"} else BAD
            self._counter.add(how, is_slow=is_slow, probe=self._probe)
            if how == BAD:
                self._group.drop()


def _wait_us(said: Any) -> int:
    """How long the upstream wants no call; a minute where it did not say."""
    limited = said if isinstance(said, RateLimited) else RateLimited(said)
    return max(1, limited.wait_us(time.time_ns() // 1000))


def permit_of(holder: Holder, service: Service) -> Permit | None:
    """The permit of a holder for a call that begins now, once for each upstream it may call."""
    permits, called = holder.permits, holder.called
    if permits is None or service.name not in permits.group.names:
        return None
    if called is None:
        called = holder.called = set()
    if service.name in called:
        return None
    called.add(service.name)
    return Permit(permits.group, service, holder.probe)


def end_handler(holder: Holder, permits: Permits, error: BaseException | None) -> None:
    """A handler has ended: where it has made no call, it was the call.

    Of several upstreams it cannot be told which one an error is about.
    """
    holder.permits = None
    group, called = permits.group, holder.called
    if called is None and error is None and not holder.probe and not group.has_slow:
        for counter in group.counters:  # the shortest way, for most calls go it
            counter.calls += 1
            if not counter.is_noted:
                counter.note()
        return
    is_call = called is None and (error is None or len(group.services) == 1)
    for service in group.services:
        permit = Permit(group, service, holder.probe, holder.started)
        if is_call:
            mark(error, permit.end(error))
        elif service.name not in (called or ()):
            permit.drop()


def refuse_closed(group: CallGroup) -> None:
    """Raise if the upstream has asked for no calls, or its breaker has opened, since the grant."""
    left_s = group.closed_until - time.monotonic()
    if left_s <= 0:
        group.closed_until = 0.0
        return
    upstream, reason = group.closed_for
    (service,) = [one for one in group.services if one.name == upstream]
    is_tenants = service.is_tenants(reason, group.tenant)
    raise UpstreamUnavailable(upstream, reason, round(left_s * 1e6), is_for_tenant=is_tenants)


def mark(error: BaseException | None, meaning: Sorted | None) -> None:
    """A worker asks an error what it means; not every class takes an attribute."""
    if error is not None and meaning is not None:
        with contextlib.suppress(AttributeError):
            error.faena_meaning = meaning  # pyright: ignore[reportAttributeAccessIssue]
