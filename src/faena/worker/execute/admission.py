"""Asks for permission before handlers begin whose tasks call upstreams.

All attempts of a claim are asked for in one request. What is refused goes back: the whole queue
waits when all of its tasks need the upstream, the tenant's lane when only its calls must wait, and
else the job alone is put off.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from itertools import groupby
from typing import Final, NamedTuple

from msgspec import structs

from faena.declaring.handler import Handler
from faena.engine import envelope
from faena.engine.calls.resilience import Grant
from faena.errors import FaenaError
from faena.outcomes import Limited, Outcome, Snooze, Snoozed, UpstreamUnavailable
from faena.resilience.call_group import CallGroup, CallGroups, Permits
from faena.resilience.gate import Gate
from faena.resilience.permits import drop_permits
from faena.resilience.question import Wanted
from faena.worker.execute.attempt_state import Attempt
from faena.worker.execute.failure import Lowered
from faena.worker.execute.fallback import Fallen, refused

_SHORTEST_US: Final = 10_000
_UNASKED_US: Final = 5_000_000
_UNASKED: Final = timedelta(microseconds=_UNASKED_US)
_ENDED: Final = frozenset({"panic", "budget", "tenant_budget", "total_budget"})
"""What a person may end sooner."""
_COMES_BACK: Final = frozenset({"reserved", "tenant_reserved"})
_UNKNOWN_US: Final = 60_000_000
"""How long to wait where the end is unknown: an operator may end a panic at any time."""


_log = logging.getLogger("faena.worker")


class Refused(NamedTuple):
    """An attempt that may not begin, and what becomes of its job."""

    attempt: Attempt
    outcome: Outcome | Fallen


class Asking(NamedTuple):
    """Attempts that must be asked for, in their order, and by whose calls they make."""

    attempts: list[Attempt]
    by_group: dict[CallGroup, list[Attempt]]


class Admission:
    """Asks for the attempts of one queue."""

    def __init__(
        self, gate: Gate, handlers: Mapping[str, Handler], on_answer: Callable[[int, int], None]
    ) -> None:
        """`on_answer` is told how many were granted and how many refused."""
        self._gate = gate
        self._handlers = handlers
        self._on_answer = on_answer
        self._groups: dict[str, CallGroup] = {}
        """Those of tasks for which it does not matter whose jobs they are."""
        self._tenants: dict[str, CallGroups] = {}
        for name, handler in handlers.items():
            if any(one.has_scopes for one in handler.upstreams):
                self._tenants[name] = gate.groups(handler.upstreams, name)
            elif handler.upstreams:
                self._groups[name] = gate.group(handler.upstreams, "")
        groups = {*self._groups.values()}
        is_alike = len(groups) == 1 and len(self._groups) == len(handlers)
        self._only = groups.pop() if is_alike else None
        """The group of all jobs of the queue, if they have the same."""

    def begin(self, attempts: Sequence[Attempt]) -> tuple[list[Attempt], Asking]:
        """Those that may begin now, and those that must be asked for."""
        now = time.monotonic()
        if self._only is not None:
            ready, rest = self._take_permits(self._only, attempts, now)
            asking = Asking(rest, {self._only: rest} if rest else {})
        else:
            ready, asking = self._begin_each(attempts, now)
        if not asking.attempts:
            self._on_answer(len(ready), 0)
        return ready, asking

    def _begin_each(self, attempts: Sequence[Attempt], now: float) -> tuple[list[Attempt], Asking]:
        """Jobs of a task and a tenant are claimed together, so runs of them share a look."""
        ready: list[Attempt] = []
        asking = Asking([], {})
        for (handler, _), some in groupby(attempts, _whose):
            run = list(some)
            if not handler.upstreams:
                ready += run
                continue
            group = self._group(run[0])
            begun, rest = self._take_permits(group, run, now)
            ready += begun
            if rest:
                asking.attempts.extend(rest)
                asking.by_group.setdefault(group, []).extend(rest)
        return ready, asking

    def _take_permits(
        self, group: CallGroup, attempts: Sequence[Attempt], now: float
    ) -> tuple[list[Attempt], list[Attempt]]:
        """Those of a group that begin with permits granted in advance, and the others."""
        taken = group.take_many(len(attempts), now)
        permits, ready = group.permits, [*attempts[:taken]]
        for attempt in ready:
            attempt.permits = permits
        if taken == len(attempts):
            self._gate.refresh(group, taken, now)
        return ready, [*attempts[taken:]]

    async def ask(self, asking: Asking) -> tuple[list[Attempt], list[Refused]]:
        """Those that may begin, in their order, and the others."""
        attempts, groups = asking
        try:
            answers = await self._gate.admit([_wanted(one, each) for one, each in groups.items()])
        except FaenaError as error:
            return [], [Refused(one, _unasked(error)) for one in attempts]
        back: list[Refused] = []
        for group, (permits, grant) in zip(groups.values(), answers, strict=True):
            for number, attempt in enumerate(group, 1):
                if number <= grant.number:
                    attempt.permits, attempt.probe = permits, permits.probe(number)
                else:
                    share = (number - grant.number) / (len(group) - grant.number)
                    back.append(Refused(attempt, self._refusal(attempt, grant, share)))
        waiting = sum(not isinstance(one.outcome, Fallen) for one in back)
        self._on_answer(len(attempts) - waiting, waiting)
        return [one for one in attempts if one.permits is not None], back

    async def renew(self, attempt: Attempt) -> Permits:
        """Ask again for an attempt whose permit has lapsed before its handler began: the process
        was frozen, and what was reserved for it has come back. Raises if that is refused."""
        while True:
            drop_permits(attempt, is_running=False)
            try:
                (answer,) = await self._gate.admit([_wanted(self._group(attempt), [attempt])])
            except FaenaError as error:
                raise Snooze(_UNASKED, reason=_told(error)) from error
            permits, grant = answer
            if not grant.number:
                raise _unavailable(attempt, grant)
            attempt.permits, attempt.probe = permits, permits.probe(1)
            if time.monotonic() < permits.lapses_at:
                return permits

    def _group(self, attempt: Attempt) -> CallGroup:
        name = attempt.handler.name
        shared = self._groups.get(name)
        return self._tenants[name].of(attempt.tenant) if shared is None else shared

    def _refusal(self, attempt: Attempt, grant: Grant, share: float) -> Outcome | Fallen:
        """What becomes of its job. What is reserved comes back bit by bit: parked jobs look again
        one after the other, not all at once only to find room for the first of them."""
        unavailable = _unavailable(attempt, grant)
        outcome = refused(attempt, unavailable) or self.outcome_of(unavailable)
        if grant.reason in _COMES_BACK and isinstance(outcome, Snoozed):
            delay_us = max(_SHORTEST_US, round(outcome.delay_us * share))
            return structs.replace(outcome, delay_us=delay_us)
        return outcome

    def outcome_of(self, error: UpstreamUnavailable) -> Outcome:
        """What becomes of a job whose call is not allowed; no attempt is used."""
        wait_us = wait_of(error)
        reason = f"upstream {error.upstream}"
        if self._is_needed_by_all(error.upstream, error.reason):
            return Limited(wait_us, "tenant" if error.is_for_tenant else "queue", reason)
        return Snoozed(wait_us, f"{reason}: {error.reason}", is_parked=True)

    def _is_needed_by_all(self, upstream: str, reason: str) -> bool:
        """Whether none of the queue's jobs can do anything meanwhile, not even fall back."""
        for handler in self._handlers.values():
            fallback = handler.fallback
            is_needed = any(one.name == upstream for one in handler.upstreams)
            if not is_needed or (fallback and fallback.terms.may_end_wait(reason)):
                return False
        return True


def be_frugal(attempt: Attempt) -> Handler:
    """The handler of an attempt while a budget is short; raises Lowered if its job goes back."""
    handler, claim = attempt.handler, attempt.claim
    priority = claim.priority or envelope.priority_of(claim.spec or b"")
    if handler.frugal_priority > priority:
        attempt.job.log(f"priority {priority} is {handler.frugal_priority} now: a budget is short")
        raise Lowered(handler.frugal_priority)
    if handler.cheaper:
        attempt.handler = handler.cheaper
    return attempt.handler


def wait_of(error: UpstreamUnavailable) -> int:
    """After how long to ask again."""
    wait_us = error.wait_us or _UNKNOWN_US
    return max(_SHORTEST_US, min(wait_us, _UNKNOWN_US) if error.reason in _ENDED else wait_us)


def _whose(attempt: Attempt) -> tuple[Handler, str | None]:
    return attempt.handler, attempt.job.tenant


def _unavailable(attempt: Attempt, grant: Grant) -> UpstreamUnavailable:
    upstreams = {one.name: one for one in attempt.handler.upstreams}
    is_tenants = upstreams[grant.upstream].is_tenants(grant.reason, attempt.tenant)
    return UpstreamUnavailable(
        grant.upstream, grant.reason, grant.wait_us, is_for_tenant=is_tenants
    )


def _wanted(group: CallGroup, attempts: Sequence[Attempt]) -> Wanted:
    longest_s = max(one.timeout_s for one in attempts)
    return Wanted(group, len(attempts), round(longest_s * 1e6))


def _unasked(error: FaenaError) -> Outcome:
    return Snoozed(_UNASKED_US, _told(error), is_parked=True)


def _told(error: FaenaError) -> str:
    _log.warning("upstreams could not be asked for permission: %s", error)
    return "upstreams could not be asked for permission"
