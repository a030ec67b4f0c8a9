"""The calls that use permits.

Permits are granted for whole batches of jobs, and while all goes well some more in advance, which
a process may use within a few milliseconds. A call that a handler makes uses its job's permit,
without asking again. A handler that makes none is the call itself: its ending is what is reported.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol

from faena.engine.calls.resilience import BAD, GOOD, VOID
from faena.errors import ConfigError
from faena.outcomes import RateLimited
from faena.resilience.call_group import Permits, Service
from faena.resilience.sorting import Sorted, at_least


class Holder(Protocol):
    """Whose handler runs, with the permits it has."""

    permits: Permits | None
    probe: str
    """The name of its permit, if it is a probe."""
    called: dict[str, Permit | None] | None
    """The upstreams it has called itself, and the permit that the first call to each used, if it
    was the job's; None while it has called none."""
    used: dict[str, dict[str, int]] | None
    """What its handler says that it has used, by upstream and item; None: nothing was said."""
    spent: dict[str, int] | None
    """What its handler says that it has cost, by upstream; None while it has said nothing."""
    started: float

    @property
    def tenant(self) -> str:
        """Whose job it is; empty for none's."""
        ...

    @property
    def is_timed_out(self) -> bool:
        """Whether it was stopped because it took too long."""
        ...

    @property
    def task_name(self) -> str:
        """The task of its job."""
        ...


CURRENT: ContextVar[Holder | None] = ContextVar("faena_permits", default=None)
"""The attempt whose handler runs here."""


class Permit:
    """One permitted call."""

    __slots__ = ("_at", "_is_alone", "_is_over", "_permits", "_probe", "_started", "spent", "used")

    def __init__(
        self,
        permits: Permits,
        service: Service,
        probe: str = "",
        *,
        started: float | None = None,
        is_alone: bool = False,
    ) -> None:
        """`is_alone` where no job has it: its end is that of the permit."""
        self._permits, self._probe, self._is_alone = permits, probe, is_alone
        self._at = permits.group.names.index(service.name)
        self._started = time.monotonic() if started is None else started
        self._is_over = False
        self.used: Mapping[str, int] = {}
        """What it has used, by item, as far as that was said."""
        self.spent: int | None = None
        """What it has cost, if that was said."""

    @property
    def is_over(self) -> bool:
        """Whether the call has ended."""
        return self._is_over

    @property
    def is_probe(self) -> bool:
        """Whether it is a probe of a half-open breaker."""
        return self._probe != ""

    @property
    def is_frugal(self) -> bool:
        """Whether so much of a budget is used up that a cheaper call should be made."""
        return self._permits.is_soft

    @property
    def _service(self) -> Service:
        return self._permits.group.services[self._at]

    def end(self, error: BaseException | None) -> Sorted | None:
        """Report how the call went, once; returns what its error means."""
        meaning = None if error is None else self._service.sorts(error)
        self._report(meaning, is_void=error is not None and meaning is None, is_cut=_is_cut(error))
        return meaning

    def end_in_thread(self, error: BaseException | None) -> Sorted | None:
        """The same, in another thread than that of the event loop."""
        meaning = None if error is None else self._service.sorts(error)
        is_void = error is not None and meaning is None
        report = partial(self._report, meaning, is_void=is_void, is_cut=_is_cut(error))
        with contextlib.suppress(RuntimeError):  # the loop was closed: the program ends
            self._permits.group.reporter.loop.call_soon_threadsafe(report)
        return meaning

    def drop(self) -> None:
        """No call was made."""
        self._report(None, is_void=True)

    def _report(self, meaning: Sorted | None, *, is_void: bool, is_cut: bool = False) -> None:
        """Count its end, as what its error means has it."""
        if self._is_over:
            return
        self._is_over = True
        kind = None if meaning is None else meaning.kind
        counter = self._permits.group.counters[self._at]
        if is_void:
            counter.add(VOID, probe=self._probe)
        elif meaning is not None and kind == "rate_limited":
            counter.add(VOID, wait_us=_wait_us(meaning.retry_after), probe=self._probe)
        else:
            slow_s = self._service.slow_s
            is_slow = slow_s is not None and time.monotonic() - self._started >= slow_s
            how = GOOD if kind in {None, "permanent"} else BAD
            counter.add(how, is_slow=is_slow, probe=self._probe)
            if how == BAD:
                self._permits.group.drop()
        is_paid = is_cut or (not is_void and kind in {None, "unknown"})
        self._permits.charge(self._at, None if is_paid and self.spent is None else self.spent or 0)
        if self._is_alone:
            self._permits.end()


def _is_cut(error: BaseException | None) -> bool:
    """Whether a call was cut off while it was under way, by a cancellation or by an error of the
    program such as a wrong `spend`: it may have been made, so it is paid."""
    return isinstance(error, ConfigError) or not isinstance(error, Exception | None)


def _wait_us(said: Any) -> int:
    """How long the upstream wants no call; a minute where it did not say, or said nonsense."""
    try:
        limited = said if isinstance(said, RateLimited) else RateLimited(said)
    except Exception:  # noqa: BLE001 - whatever was in a header
        limited = RateLimited(None)
    return at_least(limited.wait_us(time.time_ns() // 1000))


def permit_of(holder: Holder, service: Service) -> Permit | None:
    """The permit of a holder for a call that begins now, once for each upstream it may call."""
    permits, called = holder.permits, holder.called
    if permits is None or service.name not in permits.group.names:
        return None
    if called is None:
        called = holder.called = {}
    if service.name in called:
        return None
    called[service.name] = None
    now = time.monotonic()
    if now >= permits.lapses_at:  # the process was frozen: others may have spent the money
        _drop_probe(holder, permits, service)
        return None
    if holder.probe:
        called[service.name] = permit = Permit(permits, service, holder.probe)
        return permit
    permits.group.refuse_closed()
    if now > permits.sent_at + service.call_within_s:
        return None
    called[service.name] = permit = Permit(permits, service)
    return permit


def ask_instead(holder: Holder, service: Service) -> None:
    """A call asks for itself, though its job has a permit for that upstream, which is not used."""
    permits, called = holder.permits, holder.called
    if permits is None or service.name not in permits.group.names or service.name in (called or ()):
        return
    holder.called = {**(called or {}), service.name: None}
    _drop_probe(holder, permits, service)


def give_back(holder: Holder, service: Service) -> None:
    """What a job has reserved, before a call of its own asks anew; in the event loop's thread.

    Otherwise it would wait for what it holds itself, or two jobs for each other. Not while a call
    that uses the job's permit is under way.
    """
    permits, called = holder.permits, holder.called
    if permits is None or holder.probe or service.name not in permits.group.names:
        return
    if any(one is not None and not one.is_over for one in (called or {}).values()):
        return
    holder.called = {**(called or {}), service.name: None}
    holder.permits = None
    permits.end()


def _drop_probe(holder: Holder, permits: Permits, service: Service) -> None:
    if holder.probe:
        Permit(permits, service, holder.probe).drop()


def end_handler(holder: Holder, permits: Permits, error: BaseException | None) -> None:
    """A handler has ended: where it has made no call, it was the call.

    Of several upstreams it cannot be told which one an error is about.
    """
    if holder.permits is None:  # it was given back
        return
    holder.permits = None
    group, called, spent = permits.group, holder.called, holder.spent
    if error is called is spent is None and permits.is_plain:
        permits.good += 1
        if not permits.is_noted:
            permits.note()
        return
    is_clear = error is None or len(group.services) == 1 or _is_cut(error)
    is_call = called is None and is_clear
    for service in group.services:
        permit = Permit(permits, service, holder.probe, started=holder.started)
        permit.spent = spent.get(service.name) if spent else None
        if is_call:
            mark(error, permit.end(error))
        elif service.name not in (called or ()):
            permit.drop()
    permits.end()


def drop_permits(holder: Holder, *, is_running: bool) -> None:
    """The handler of an attempt never began, or is not waited for any longer.

    A probe makes room for another. What still runs is charged as estimated.
    """
    permits, holder.permits = holder.permits, None
    if permits is None:
        return
    group, called = permits.group, holder.called or ()
    for at, service in enumerate(group.services):
        if service.name not in called:
            _drop_probe(holder, permits, service)
            if is_running:
                permits.charge(at, None)
    permits.end()


def mark(error: BaseException | None, meaning: Sorted | None) -> None:
    """A worker asks an error what it means; not every class takes an attribute."""
    if error is not None and meaning is not None:
        with contextlib.suppress(Exception):
            error.faena_meaning = meaning  # pyright: ignore[reportAttributeAccessIssue]
