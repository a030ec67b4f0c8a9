"""The permit of a job whose handler runs in a child process.

The child is lent it: the first marked call to each upstream uses it there, and the child's answer
says how these calls ended. So the worker counts and pays each call once, and a probe is the call
that the child makes. Further calls ask for themselves, from the child.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from faena.engine.calls.resilience import BAD, VOID
from faena.resilience.call_group import CallGroup, Counter, Permits, Service
from faena.resilience.closing import Closings
from faena.resilience.permits import Holder, Permit
from faena.resilience.sorting import Sorted, meaning_of


class Loan(NamedTuple):
    """What a child must know of the permit, in values that any process can read."""

    task: str
    tenant: str
    probe: str
    """The name of the permit, if it is a probe."""
    is_soft: bool
    """Whether calls should be frugal."""
    sent_at: float
    """Of the monotonic clock, which the processes of a machine share."""
    lapses_at: float
    """The same, when what it has reserved comes back."""


class CallEnd(NamedTuple):
    """How a call with the permit ended."""

    upstream: str
    how: int
    is_slow: bool
    wait_us: int
    micro: int | None
    """What it has cost; None: what was estimated."""


class Returned(NamedTuple):
    """What a handler has done with the permit."""

    called: tuple[str, ...] | None = ()
    """The upstreams that it called; None if it has marked no call, and was the call itself."""
    spent: Mapping[str, int] | None = None
    """What a handler that was the call says that it has cost."""
    ended: tuple[CallEnd, ...] = ()
    meaning: Sorted | None = None
    """What the error that it raised meant to the upstream whose call it ended."""


def lend(holder: Holder) -> Loan | None:
    """What a child is told of an attempt's permit; None if its task names no upstream."""
    permits = holder.permits
    if permits is None:
        return None
    said = holder.task_name, holder.tenant, holder.probe
    return Loan(*said, permits.is_soft, permits.sent_at, permits.lapses_at)


def take_back(holder: Holder, returned: Returned) -> None:
    """Count and pay what the child has called; the end of the attempt does the rest."""
    permits = holder.permits
    if permits is None:  # the attempt was given up meanwhile, and is paid
        return
    holder.called = None if returned.called is None else dict.fromkeys(returned.called)
    holder.spent = dict(returned.spent) if returned.spent else None
    group = permits.group
    for end in returned.ended:
        if end.upstream not in group.names:  # the child has imported a newer file
            continue
        at = group.names.index(end.upstream)
        counter = group.counters[at]
        counter.add(end.how, is_slow=end.is_slow, wait_us=end.wait_us, probe=holder.probe)
        if end.how == BAD:
            group.drop()
        permits.charge(at, end.micro)


class Borrower:
    """In the child: whose handler runs, with the permit that was lent."""

    is_timed_out = False
    """A child that takes too long is killed."""

    def __init__(self, loan: Loan, services: Sequence[Service]) -> None:
        self._lent = _Lent(loan, services)
        self.permits: Permits | None = self._lent
        self.probe, self.tenant, self.task_name = loan.probe, loan.tenant, loan.task
        self.called: dict[str, Permit | None] | None = None
        self.used: dict[str, dict[str, int]] | None = None
        self.spent: dict[str, int] | None = None
        self.started = time.monotonic()

    def returned(self, error: BaseException | None) -> Returned:
        """What the handler has done, and the error that it ended with."""
        called = None if self.called is None else tuple(sorted(self.called))
        return Returned(called, self.spent, tuple(self._lent.ended), _plain(error))


def _plain(error: BaseException | None) -> Sorted | None:
    """What an error means, without what other processes might be unable to read."""
    meaning = None if error is None else meaning_of(error)
    if meaning is None or isinstance(meaning.retry_after, str | int | float | None):
        return meaning
    return meaning._replace(retry_after=None)


class _Tally(Counter):
    """Keeps how the last call ended, for its costs are told next."""

    last: tuple[int, bool, int] = VOID, False, 0

    def add(self, how: int, *, is_slow: bool = False, wait_us: int = 0, probe: str = "") -> None:  # noqa: ARG002 - the worker knows it
        self.last = how, is_slow, wait_us


class _Lent(Permits):
    """Collects the calls that are made with the permit."""

    def __init__(self, loan: Loan, services: Sequence[Service]) -> None:
        here = _Here()
        self._tallies = [_Tally(here, one, loan.tenant) for one in services]
        group = CallGroup(here, services, loan.tenant, loan.task, self._tallies)
        super().__init__(group, 0, 0.0, is_probe=bool(loan.probe), is_soft=loan.is_soft)
        self.sent_at, self.lapses_at = loan.sent_at, loan.lapses_at
        self.ended: list[CallEnd] = []

    def charge(self, at: int, micro: int | None) -> None:
        self.ended.append(CallEnd(self.group.names[at], *self._tallies[at].last, micro))


class _Here:
    """Reports nothing: the answer of the child does."""

    def __init__(self) -> None:
        self.loop = cast("asyncio.AbstractEventLoop", self)
        self.closings = Closings()

    def call_soon_threadsafe(self, report: Callable[[], Any]) -> None:
        """There is no event loop; a call that ends in a thread is noted in it."""
        report()

    def note(self, counter: Counter) -> None: ...

    def note_ended(self, permits: Permits) -> None: ...

    def hurry(self) -> None: ...

    def close(self, upstream: str, tenant: str, wait_us: int, reason: str) -> None: ...
