"""What keeps a job from starting, in words. Instants are the server's microseconds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from faena.engine.calls.upstreams import UpstreamView
from faena.engine.gates import ClosedGate
from faena.engine.settings import read_limits
from faena.errors import FaenaError
from faena.inspection.instant import times
from faena.values.duration import describe
from faena.values.names import NAME
from faena.values.view import View

_MINUTE_US = 60_000_000
_UPSTREAM = re.compile(rf"upstream (?P<name>{NAME})(?:: [a-z_ ]+)?(?P<rest>; .*)?")
"""The reason of a hold, of parking or of a snooze that is about an upstream."""


class Gate(View, frozen=True):
    """One thing that keeps a job from starting."""

    name: str
    """delayed, parked, behind, unserved, held, max_running, limit, tenant_moving, tenant_held,
    tenant_max_running, tenant_limit, key_limit, slots or turn."""

    detail: str
    """Depending on the gate: the reason of a snooze or of parking, the shard without a worker, the
    reason of a hold, the limit, the job that comes first and its state, the lanes ahead. If it is
    for an upstream: its state, and the budgets without room."""

    until: int | None
    """When it opens on its own; None if that depends on something else."""

    upstream: str | None = None
    """The upstream that it is about, if its state was read."""

    def words(self, now: int) -> str:
        """The gate as part of a sentence."""
        said = _WORDS[self.name](self.detail)
        if self.until is None or self.until <= now:
            return said
        return f"{said}, for another {describe(rounded(self.until - now))}"

    def upstream_name(self) -> str | None:
        """The upstream that it is about."""
        found = _UPSTREAM.fullmatch(self.detail)
        return self.upstream or (found["name"] if found else None)


def awaited_upstreams(gates: Sequence[Gate]) -> list[str]:
    """The upstreams that a job waits for."""
    return list(dict.fromkeys(name for gate in gates if (name := gate.upstream_name())))


def of_upstream(gate: Gate, views: Mapping[str, UpstreamView], now: int) -> Gate:
    """A gate with the state of the upstream that it is about."""
    found = _UPSTREAM.fullmatch(gate.detail)
    view = views.get(found["name"]) if found else None
    if found is None or view is None:
        return gate
    until, again = gate.until, ""
    if view.panic is not None:
        until = view.panic.until  # a hold is for a minute only
    elif view.full_budgets and until is not None and until > now:
        # A worker asks again long before the period ends: the budget may have been raised.
        again = f"; a worker asks again in {describe(rounded(until - now))}"
        until = max(until, view.opens_at or 0)
    detail = f"{view.words()}{again}{found['rest'] or ''}"
    return msgspec.structs.replace(gate, detail=detail, until=until, upstream=view.name)


def gates_of(closed: Sequence[ClosedGate]) -> tuple[Gate, ...]:
    """Gates in the words of the API."""
    return tuple(
        Gate(name, _DETAILS[name](detail) if name in _DETAILS else detail, until)
        for name, detail, until in closed
    )


def rounded(us: int) -> int:
    """To the hundredth of a second; to the second, where it is more than an hour."""
    return round(us, -6) if us > 60 * _MINUTE_US else max(10_000, round(us, -4))


def _behind(detail: str) -> str:
    job, _, state = detail.partition(" ")
    waits = {"delayed": "waits for its next attempt", "running": "runs", "ready": "comes first"}
    return f"job {job} {waits.get(state, f'is {state}')}"


def _parked(told: str) -> str:
    number, _, reason = told.partition(" ")
    return f"{reason}; parked {times(int(number))}"


def _bound(told: str) -> str:
    try:
        (limit,) = read_limits(told)
    except (FaenaError, ValueError):
        return told  # a shard may have no part of it
    return str(limit)


def _limit(whose: str) -> Callable[[str], str]:
    def say(limit: str) -> str:
        if " of " not in limit:
            return f"{whose} limit of {limit} is used up"
        return f"{whose} limit of {limit} has no room for the cost of this job or the one before it"

    return say


_DETAILS: dict[str, Callable[[str], str]] = {
    "parked": _parked,
    "limit": _bound,
    "tenant_limit": _bound,
    "key_limit": _bound,
}


def _jobs(number: str) -> str:
    return "1 job" if number == "1" else f"{number} jobs"


_WORDS: dict[str, Callable[[str], str]] = {
    "delayed": lambda reason: f"it was snoozed ({reason})" if reason else "it is not due yet",
    "parked": lambda reason: f"it is parked ({reason})",
    "behind": _behind,
    "unserved": lambda shard: f"no worker serves {shard}",
    "slots": lambda number: f"all {number} slots of its workers are taken",
    "held": lambda reason: f"the queue is held ({reason})",
    "max_running": lambda most: f"the queue is running {_jobs(most)}, its maximum",
    "limit": _limit("the queue's"),
    "tenant_moving": lambda _: "its tenant is moving to another shard",
    "tenant_held": lambda reason: f"its tenant is held ({reason})",
    "tenant_max_running": lambda most: f"its tenant is running {_jobs(most)}, its maximum",
    "tenant_limit": _limit("its tenant's"),
    "key_limit": _limit("its key's"),
    "turn": lambda lanes: {"0": "its tenant is next", "1": "1 tenant comes before its own"}.get(
        lanes, f"{lanes} tenants come before its own"
    ),
}
