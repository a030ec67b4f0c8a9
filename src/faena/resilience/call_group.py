"""The calls of a process to upstreams, by tenant: what it may call, and what has ended.

A group asks for permits, and gets them in lots. What has ended is counted here until the gate takes
it along with the next question.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from faena.engine.calls.resilience import BAD, GOOD_FOR_US, VOID, Report, Settled
from faena.resilience.closing import Closing, Closings
from faena.resilience.sorting import Sorted

_MOST_GROUPS: Final = 10_000


class Service(Protocol):
    """An upstream, as far as permits need it."""

    name: str
    slow_s: float | None
    """From how many seconds on a call is slow; None for never."""
    is_priced: bool
    call_within_s: float
    """How long after its grant a permit is good for a call."""
    timeout_us: int

    def sorts(self, error: BaseException) -> Sorted | None:
        """What an error says of it."""
        ...

    def is_tenants(self, reason: str, tenant: str) -> bool:
        """Whether a refusal is for the calls of one tenant only."""
        ...

    def breaker_of(self, tenant: str) -> str:
        """Whose breaker counts for a tenant's calls: its own, or empty for that of all."""
        ...

    def estimate(self) -> int:
        """What a call costs at most, in millionths."""
        ...


class Reporter(Protocol):
    """Sends what is counted."""

    loop: asyncio.AbstractEventLoop
    closings: Closings

    def note(self, counter: Counter) -> None:
        """A counter that was empty counts again."""
        ...

    def note_ended(self, permits: Permits) -> None:
        """Calls of a grant have ended, and none of it was noted yet."""
        ...

    def hurry(self) -> None:
        """Report at once, for other processes must know."""
        ...

    def close(self, upstream: str, tenant: str, wait_us: int, reason: str) -> None:
        """An upstream takes no calls for some time: of a tenant, or of all without one."""
        ...


class Counter:
    """Calls that one breaker counts, which have ended and are still to be reported."""

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

    def add_good(self, number: int) -> None:
        """So many calls went well; or have ended, at least."""
        self.calls += number
        if not self.is_noted:
            self._reporter.note(self)

    def add_bad(self, number: int) -> None:
        """So many calls have failed."""
        self.failed += number
        self.add_good(number)

    def add(self, how: int, *, is_slow: bool = False, wait_us: int = 0, probe: str = "") -> None:
        """One more call has ended, GOOD, BAD or VOID."""
        if how != VOID:
            self.calls += 1
            self.failed += how == BAD
            self.slow += is_slow
        if wait_us:
            self.wait_us = max(self.wait_us, wait_us)
            self._reporter.close(self._service.name, self._tenant, wait_us, "rate_limited")
        if probe:
            self.probes += (probe, how)
        if not self.is_noted:
            self._reporter.note(self)
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
        "closings",
        "counters",
        "drops",
        "drops_when_asked",
        "has_slow",
        "is_priced",
        "is_refreshing",
        "lasting_us",
        "names",
        "permits",
        "reporter",
        "services",
        "task",
        "tenant",
        "used",
    )

    def __init__(
        self,
        reporter: Reporter,
        services: Sequence[Service],
        tenant: str,
        task: str,
        counters: Sequence[Counter],
    ) -> None:
        """`task` is the one whose costs they are; empty for none's."""
        self.reporter, self.services, self.counters = reporter, services, counters
        self.closings = reporter.closings
        self.tenant, self.task = tenant, task
        self.names = [one.name for one in services]
        self.has_slow = any(one.slow_s is not None for one in services)
        self.is_priced = any(one.is_priced for one in services)
        self.lasting_us = max(one.timeout_us for one in services)
        """How long a call may be under way."""
        self.permits = Permits(self, 0, 0.0)
        """Those that were granted last."""
        self.drops = self.drops_when_asked = 0
        """How often what was granted in advance was dropped, now and when it asked last."""
        self.is_refreshing = False
        """Whether the next permits in advance are asked for."""
        self.asked_at = 0.0
        self.used = 0
        """How many permits were used since it asked."""

    def take(self, now: float) -> Permits | None:
        """A permit that was granted in advance, if one is left and still good."""
        permits = self.permits
        if not permits.left or now >= permits.good_until:
            return None
        if self.closings.known and self.closing():
            return None
        permits.left -= 1
        self.used += 1
        return permits

    def take_many(self, most: int, now: float) -> int:
        """How many of so many were granted in advance and may be used now; these are taken."""
        if not self.has(1, now):
            return 0
        number = min(most, self.permits.left)
        self.permits.left -= number
        self.used += number
        return number

    def has(self, number: int, now: float) -> bool:
        """Whether so many are left that were granted in advance."""
        permits = self.permits
        return permits.left >= number and now < permits.good_until and not self.closing()

    def refreshed(self, answered: asyncio.Future[Any]) -> None:
        """An answer has come, or none: then the next calls ask for themselves, and are told."""
        self.is_refreshing = False
        if not answered.cancelled():
            answered.exception()

    def closing(self) -> Closing | None:
        """What forbids its calls, whatever was granted before."""
        return self.closings.of(self.names, self.tenant) if self.closings.known else None

    def refuse_closed(self) -> None:
        """Raise if an upstream wants no calls, or its breaker has opened, since the grant."""
        if self.closings.known and (closing := self.closing()):
            raise closing.refusal()

    def drop(self) -> None:
        """Ask before the next call, whatever was granted in advance, or is being granted."""
        self.permits.drop()
        self.drops += 1

    def wanted(self, number: int, now: float, within_s: float, most: int) -> int:
        """How many permits to ask for beyond `number`: what it used lately in `within_s`."""
        elapsed, used = now - self.asked_at, self.used
        self.asked_at, self.used, self.drops_when_asked = now, number, self.drops
        if not 0 < elapsed < 1:  # it has just asked, or has nothing to do
            self.used += used if elapsed == 0 else 0
            return 0
        return min(most, round(used / max(elapsed, within_s / 10) * within_s))


class CallGroups:
    """The groups of one task's calls, or of calls outside of jobs, by tenant."""

    __slots__ = ("_make", "by_tenant", "names")

    def __init__(self, names: Sequence[str], make: Callable[[str], CallGroup]) -> None:
        """`names` are those of the upstreams that each call needs."""
        self.names, self._make = names, make
        self.by_tenant: dict[str, CallGroup] = {}

    def of(self, tenant: str) -> CallGroup:
        """That of a tenant. Of many, some are forgotten: they have to ask again."""
        group = self.by_tenant.get(tenant)
        if group is None:
            if len(self.by_tenant) >= _MOST_GROUPS:
                self.by_tenant = {key: one for key, one in self.by_tenant.items() if not key}
            group = self.by_tenant[tenant] = self._make(tenant)
        return group


class Permits:
    """Those of one grant, which is a lot; each is for one call to each of its upstreams."""

    __slots__ = (
        "_costs",
        "_ended",
        "_estimates",
        "closings",
        "good",
        "good_until",
        "group",
        "is_noted",
        "is_plain",
        "is_probe",
        "is_soft",
        "lapses_at",
        "left",
        "sent_at",
        "stem",
    )

    def __init__(
        self,
        group: CallGroup,
        left: int,
        good_until: float,
        stem: str = "",
        estimates: Sequence[int] = (),
        *,
        lapses_at: float = math.inf,
        is_probe: bool = False,
        is_soft: bool = False,
    ) -> None:
        """`stem` is the lot's name, and what the names of its permits begin with."""
        self.group = group
        self.left = left
        """How many may still be used, which were granted in advance."""
        self.good_until = good_until
        self.sent_at = good_until - GOOD_FOR_US / 1e6
        """When they were asked for: not later than they were granted."""
        self.lapses_at = lapses_at if estimates else math.inf
        """When the server takes its holder for dead, so that what was reserved comes back: a call
        that begins later has no money. Of the monotonic clock, and rather too soon."""
        self.stem = stem
        self.is_probe, self.is_soft = is_probe, is_soft
        self.closings = group.closings
        self.is_plain = not (is_probe or group.has_slow)
        """Whether a handler that went well, and said nothing of its calls, is only counted."""
        self.is_noted = False
        self.good = 0
        """Handlers that were the call themselves, and went well."""
        self._ended = 0
        """Others that have ended."""
        self._estimates = estimates
        self._costs = [0] * len(estimates)

    def note(self) -> None:
        """See to it that what has ended is reported."""
        self.group.reporter.note_ended(self)

    def probe(self, number: int) -> str:
        """The name of one of them; empty where they are no probes."""
        return f"{self.stem}:{number}" if self.is_probe else ""

    def end(self, number: int = 1) -> None:
        """So many are used up."""
        self._ended += number
        if self._estimates and not self.is_noted:
            self.group.reporter.note_ended(self)

    def charge(self, at: int, micro: int | None) -> None:
        """A call to one of its upstreams has cost so much; None: what was estimated."""
        if self._estimates:
            self._costs[at] += self._estimates[at] if micro is None else micro
            if not self.is_noted:  # a call may end after its job
                self.group.reporter.note_ended(self)

    def drop(self) -> None:
        """Use no more of what was granted in advance."""
        left, self.left = self.left, 0
        if left and self._estimates:
            self.end(left)

    def take_ended(self) -> Settled | None:
        """Count what went well, and tell what it has cost; None where nothing is paid."""
        good, self.good, self.is_noted = self.good, 0, False
        ended, self._ended = self._ended, 0
        for counter in self.group.counters if good else ():
            counter.add_good(good)
        if not self._estimates:
            return None
        costs: list[Any] = []
        for i, name in enumerate(self.group.names):
            costs += (name, self._costs[i] + good * self._estimates[i])
        self._costs = [0] * len(self._estimates)
        return Settled(self.stem, good + ended, self.group.tenant, self.group.task, costs)
