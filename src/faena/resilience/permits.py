"""What one attempt of a job may call, and how its calls went.

The permits are given before the handler begins, with those of the whole batch. A call that the
handler makes uses one, without asking again. A handler that makes none is the call itself: its
ending is what is reported.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from faena.engine.calls.resilience import BAD, GOOD, VOID
from faena.outcomes import RateLimited
from faena.resilience.gate import Gate
from faena.resilience.sorting import Sorted


class Service(Protocol):
    """An upstream, as far as its permits need it."""

    name: str
    slow_s: float | None
    """From how many seconds on a call is slow; None for never."""

    def sorts(self, error: BaseException) -> Sorted | None:
        """What an error says of it."""
        ...


class Permit:
    """One permitted call."""

    __slots__ = ("_gate", "_id", "_is_over", "_is_probe", "_service", "_started", "_tenant")

    def __init__(
        self, gate: Gate, service: Service, tenant: str, permit_id: str, *, is_probe: bool
    ) -> None:
        self._gate, self._service, self._tenant = gate, service, tenant
        self._id, self._is_probe = permit_id, is_probe
        self._is_over = False
        self._started = time.monotonic()

    def end(self, error: BaseException | None) -> Sorted | None:
        """Report how the call went, once; returns what its error means."""
        if self._is_over:
            return None
        self._is_over = True
        meaning = None if error is None else self._service.sorts(error)
        if error is not None and meaning is None:
            self._report(VOID)
        elif meaning is not None and meaning.kind == "rate_limited":
            self._report(VOID, wait_us=_wait_us(meaning.retry_after))
        elif meaning is not None and meaning.kind != "permanent":
            self._report(BAD)
        else:
            self._report(GOOD)
        return meaning

    def drop(self) -> None:
        """No call was made."""
        if not self._is_over:
            self._is_over = True
            self._report(VOID)

    def _report(self, how: int, wait_us: int = 0) -> None:
        tally = self._gate.tally(self._service.name, self._tenant)
        if how != VOID:
            tally.calls += 1
            tally.failed += how == BAD
            slow_s = self._service.slow_s
            tally.slow += slow_s is not None and time.monotonic() - self._started >= slow_s
        tally.wait_us = max(tally.wait_us, wait_us)
        if self._is_probe:
            tally.probes += (self._id, how)


def _wait_us(said: Any) -> int:
    """How long the upstream wants no call; a minute where it did not say."""
    limited = said if isinstance(said, RateLimited) else RateLimited(said)
    return max(1, limited.wait_us(time.time_ns() // 1000))


class Permits:
    """Those of an attempt: one for each upstream that its task names."""

    __slots__ = ("_gate", "_id", "_is_probe", "_left", "_started", "_used", "tenant")

    def __init__(
        self,
        gate: Gate,
        services: Sequence[Service],
        tenant: str,
        permit_id: str,
        *,
        is_probe: bool,
    ) -> None:
        self._gate, self._left, self.tenant = gate, services, tenant
        self._id, self._is_probe = permit_id, is_probe
        self._used = False
        self._started = 0.0

    def begin(self) -> None:
        """Its handler begins."""
        self._started = time.monotonic()

    def take(self, upstream: str) -> Permit | None:
        """One for a call that begins now, if it has one left."""
        self._used = True
        found = [one for one in self._left if one.name == upstream]
        self._left = [one for one in self._left if one.name != upstream]
        return self._permit(found[0]) if found else None

    def end(self, error: BaseException | None) -> None:
        """The handler has ended: where it has made no call, it was the call.

        Of several upstreams nobody could tell which one an error is about.
        """
        left, self._left = self._left, ()
        if len(left) == 1 and not self._used:
            (service,) = left
            if error is None and service.slow_s is None and not self._is_probe:
                self._gate.tally(service.name, self.tenant).calls += 1  # most calls, by far
                return
            permit = self._permit(service)
            permit._started = self._started  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            mark(error, permit.end(error))
            return
        self._drop(left)

    def drop(self) -> None:
        """Its handler never began, or its end was reported already."""
        left, self._left = self._left, ()
        self._drop(left)

    def _drop(self, left: Sequence[Service]) -> None:
        for service in left if self._is_probe else ():
            self._permit(service).drop()

    def _permit(self, service: Service) -> Permit:
        return Permit(self._gate, service, self.tenant, self._id, is_probe=self._is_probe)


def mark(error: BaseException | None, meaning: Sorted | None) -> None:
    """A worker asks an error what it means; not every class takes an attribute."""
    if error is not None and meaning is not None:
        with contextlib.suppress(AttributeError):
            error.faena_meaning = meaning  # pyright: ignore[reportAttributeAccessIssue]


CURRENT: ContextVar[Permits | None] = ContextVar("faena_permits", default=None)
"""Those of the attempt whose handler runs here."""
