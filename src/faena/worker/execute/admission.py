"""Asks for permission before handlers begin whose tasks call upstreams.

All attempts of a claim are asked for in one request. What is refused goes back: the whole queue
waits when all of its tasks need the upstream, the tenant's lane when only its calls must wait, and
else the job alone is put off.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from faena.declaring.handler import Handler
from faena.engine.calls.resilience import Ask, Grant
from faena.errors import FaenaError
from faena.outcomes import Limited, Outcome, Snoozed, UpstreamUnavailable
from faena.resilience.gate import Gate
from faena.resilience.permits import CURRENT, Permits
from faena.worker.execute.attempt_state import Attempt, Stop

_SHORTEST_US: Final = 10_000
_UNASKED_US: Final = 5_000_000
_UNKNOWN_US: Final = 60_000_000
"""How long to wait where nobody can tell: a panic lasts until somebody ends it."""


_log = logging.getLogger("faena.worker")


class Refused(NamedTuple):
    """An attempt that may not begin, and what becomes of its job."""

    attempt: Attempt
    outcome: Outcome


class Admission:
    """Asks for the attempts of one queue."""

    def __init__(
        self, gate: Gate, handlers: Mapping[str, Handler], on_answer: Callable[[int, int], None]
    ) -> None:
        """`on_answer` is told how many were granted and how many refused."""
        self._gate = gate
        self._handlers = handlers
        self._on_answer = on_answer

    async def ask(self, attempts: Sequence[Attempt]) -> tuple[list[Attempt], list[Refused]]:
        """Those that may begin, in their order, and the others."""
        groups = _grouped(attempts)
        stem = self._gate.stem()
        asks = [
            Ask([one.name for one in group[0].handler.upstreams], tenant, len(group), f"{stem}.{i}")
            for i, ((_, tenant), group) in enumerate(groups.items())
        ]
        try:
            grants = await self._gate.admit(asks)
        except FaenaError as error:
            return [], [Refused(one, _unasked(error)) for one in attempts]
        refused: list[Refused] = []
        for group, ask, grant in zip(groups.values(), asks, grants, strict=True):
            for number, attempt in enumerate(group, 1):
                if number <= grant.number:
                    self._permit(attempt, ask, number, is_probe=grant.is_probe)
                else:
                    refused.append(Refused(attempt, self._refusal(attempt, grant)))
        self._on_answer(len(attempts) - len(refused), len(refused))
        return [one for one in attempts if one.permits is not None], refused

    def _permit(self, attempt: Attempt, ask: Ask, number: int, *, is_probe: bool) -> None:
        permit_id = f"{ask.stem}:{number}" if is_probe else ""
        upstreams = attempt.handler.upstreams
        attempt.permits = Permits(self._gate, upstreams, ask.tenant, permit_id, is_probe=is_probe)

    def _refusal(self, attempt: Attempt, grant: Grant) -> Outcome:
        tenant = attempt.job.tenant or ""
        upstreams = {one.name: one for one in attempt.handler.upstreams}
        is_tenants = upstreams[grant.upstream].is_tenants(grant.reason, tenant)
        unavailable = UpstreamUnavailable(
            grant.upstream, grant.reason, grant.wait_us, is_for_tenant=is_tenants
        )
        return self.outcome_of(unavailable)

    def outcome_of(self, error: UpstreamUnavailable) -> Outcome:
        """What becomes of a job whose call is not allowed; no attempt is used."""
        wait_us = max(_SHORTEST_US, error.wait_us or _UNKNOWN_US)
        reason = f"upstream {error.upstream}"
        if self._is_needed_by_all(error.upstream):
            return Limited(wait_us, "tenant" if error.is_for_tenant else "queue", reason)
        return Snoozed(wait_us, f"{reason}: {error.reason}", is_parked=True)

    def _is_needed_by_all(self, upstream: str) -> bool:
        handlers = self._handlers.values()
        return all(any(one.name == upstream for one in each.upstreams) for each in handlers)


async def permitted(
    attempt: Attempt, permits: Permits, call: Callable[[Attempt], Awaitable[Any]]
) -> Any:
    """Call the handler, and report how its calls to upstreams went."""
    before = CURRENT.set(permits)
    permits.begin()
    try:
        value = await call(attempt)
    except BaseException as error:
        permits.end(TimeoutError() if attempt.stop is Stop.TIMEOUT else error)
        raise
    finally:
        CURRENT.reset(before)
    permits.end(None)
    return value


def _unasked(error: FaenaError) -> Outcome:
    _log.warning("upstreams could not be asked for permission: %s", error)
    return Snoozed(_UNASKED_US, "upstreams could not be asked for permission", is_parked=True)


def _grouped(
    attempts: Sequence[Attempt],
) -> dict[tuple[tuple[str, ...], str], list[Attempt]]:
    groups: dict[tuple[tuple[str, ...], str], list[Attempt]] = {}
    for attempt in attempts:
        names = tuple(one.name for one in attempt.handler.upstreams)
        groups.setdefault((names, attempt.job.tenant or ""), []).append(attempt)
    return groups
