"""Why a job waits, in facts and in words. Instants are the server's microseconds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from faena.engine.calls.upstreams import UpstreamView
from faena.engine.gates import ClosedGate, Waiting
from faena.engine.settings import read_limits
from faena.states import FINISHED, State
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
    tenant_max_running, tenant_limit, key_limit or turn."""

    detail: str
    """Depending on the gate: the reason of a snooze or of parking, the shard without a worker, the
    reason of a hold, the limit, the job that comes first and its state, the lanes ahead. If it is
    for an upstream: its state, and the budgets without room."""

    until: int | None
    """When it opens on its own; None if that depends on something else."""

    def words(self, now: int) -> str:
        """The gate as part of a sentence."""
        said = _WORDS[self.name](self.detail)
        if self.until is None or self.until <= now:
            return said
        return f"{said}, for another {describe(_rounded(self.until - now))}"


class Past(View, frozen=True, kw_only=True):
    """The history of a job that no longer waits."""

    at: int | None
    """When it was claimed, if it is running; otherwise when it finished."""

    attempts_made: int
    losses: int
    worker: str | None
    error: str | None
    """Name and message of its last error."""
    fallback: str | None = None
    """The fallback that ended it; see `JobView`."""
    handed_to: str | None = None
    """The job that it was handed over to."""

    def words(self, state: State) -> str:
        """What happened, as the end of a sentence."""
        at = "" if self.at is None else f" {instant(self.at)}"
        failed = self.attempts_made - (state is State.COMPLETED)
        notes = [_number(failed, "failed attempt")] if failed else []
        notes += [_number(self.losses, "lost worker")] if self.losses else []
        behind = f", after {' and '.join(notes)}" if notes else ""
        if state is State.RUNNING:
            by = f" on worker {self.worker}" if self.worker else ""
            return f"runs since{at}{by}{behind}"
        said = {State.COMPLETED: "completed", State.DEAD: "died", State.CANCELLED: "was cancelled"}
        why = f" of {self.error}" if self.error and state is State.DEAD else ""
        return f"{said[state]}{at}{self._through(state)}{why}{behind}"

    def _through(self, state: State) -> str:
        if self.fallback is None or state is not State.COMPLETED:
            return ""
        handed = f", which made job {self.handed_to}" if self.handed_to else ""
        return f" through its fallback {self.fallback}{handed}"


class Explanation(View, frozen=True, kw_only=True):
    """Why a job has not started yet."""

    id: str
    queue: str
    state: State | None
    """None when the queue has no such job."""

    at: int
    gates: tuple[Gate, ...]
    """Everything that keeps it from starting, the queue's gates first; a ready job without gates
    only waits for its turn."""

    ahead: int
    """Jobs that come first, as far as known."""

    rate: float
    """Recent claims per second, of the whole queue."""

    past: Past | None = None
    """The history of a job that no longer waits: it is running or finished."""

    upstreams: tuple[UpstreamView, ...] = ()
    """The upstreams that it waits for."""

    @property
    def is_waiting(self) -> bool:
        """Whether the job is there and has not started."""
        return self.state is not None and self.state not in _SETTLED

    @property
    def expected_at(self) -> int | None:
        """When it should start; None if unknown: nothing was claimed recently, an operator must
        act first, or a running job must end.
        """
        if not self.is_waiting:
            return None
        if any(gate.name == "parked" and not _ends_by_time(gate) for gate in self.gates):
            return None  # its end is only when a worker looks at it again
        if any(gate.until is None and gate.name in _OPENED_BY_OTHERS for gate in self.gates):
            return None
        opens_at = max((gate.until or 0 for gate in self.gates), default=0)
        if self.ahead and not self.rate:
            return None
        return max(opens_at, self.at) + int(self.ahead / self.rate * 1e6 if self.ahead else 0)

    @property
    def is_earliest(self) -> bool:
        """Whether it can only be said that the job does not start before `expected_at`: it waits
        for an upstream, and what comes then depends on a probe or on the next calls.
        """
        return bool(self.upstreams) and self.expected_at is not None

    def __str__(self) -> str:
        if self.state is None:
            return f"queue {self.queue} has no job {self.id}"
        if self.state in _SETTLED:
            told = self.past.words(self.state) if self.past else f"is {self.state.value}"
            return f"job {self.id} is not waiting: it {told}"
        reasons = [gate.words(self.at) for gate in self.gates]
        if self.ahead:
            come = "job comes" if self.ahead == 1 else "jobs come"
            reasons.append(f"{self.ahead} {come} first")
        return f"job {self.id} is {self.state.value}: {'; '.join(reasons) or 'it is next'}"


def instant(us: int) -> str:
    """A server's instant for people."""
    return datetime.fromtimestamp(us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def times(number: int) -> str:
    """How often something happened."""
    return "once" if number == 1 else f"{number} times"


def _number(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def explanation_of(queue: str, job_id: str, found: Waiting) -> Explanation:
    """What a shard has found, in the words of the API."""
    elapsed_us = _MINUTE_US + found.now % _MINUTE_US
    return Explanation(
        id=job_id,
        queue=queue,
        state=State(found.state) if found.state else None,
        at=found.now,
        gates=gates_of(found.gates),
        ahead=found.ahead,
        rate=(found.claimed_before + found.claimed_now) / (elapsed_us / 1e6),
    )


def _ends_by_time(parked: Gate) -> bool:
    """Whether a job that was parked should start then: an upstream should take calls."""
    return parked.until is not None and parked.detail.startswith("upstream ")


def awaited_upstreams(gates: Sequence[Gate]) -> list[str]:
    """The upstreams that a job waits for."""
    found = [_UPSTREAM.fullmatch(gate.detail) for gate in gates]
    return list(dict.fromkeys(one["name"] for one in found if one))


def with_upstreams(told: Explanation, views: Sequence[UpstreamView]) -> Explanation:
    """An explanation with the state of the upstreams that its job waits for."""
    known = {view.name: view for view in views}
    gates = tuple(_of_upstream(gate, known, told.at) for gate in told.gates)
    return msgspec.structs.replace(told, gates=gates, upstreams=tuple(views))


def _of_upstream(gate: Gate, views: Mapping[str, UpstreamView], now: int) -> Gate:
    found = _UPSTREAM.fullmatch(gate.detail)
    view = views.get(found["name"]) if found else None
    if found is None or view is None:
        return gate
    until, again = gate.until, ""
    if view.panic is not None:
        until = view.panic.until  # a hold is for a minute only
    elif view.full_budgets and until is not None and until > now:
        # A worker asks again long before the period ends: the budget may have been raised.
        again = f"; a worker asks again in {describe(_rounded(until - now))}"
        until = max(until, view.opens_at or 0)
    detail = f"{view.words()}{again}{found['rest'] or ''}"
    return msgspec.structs.replace(gate, detail=detail, until=until)


def gates_of(closed: Sequence[ClosedGate]) -> tuple[Gate, ...]:
    """Gates in the words of the API."""
    return tuple(
        Gate(name, _DETAILS[name](detail) if name in _DETAILS else detail, until)
        for name, detail, until in closed
    )


def _rounded(us: int) -> int:
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
    (limit,) = read_limits(told)
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

_SETTLED = FINISHED | {State.RUNNING}
_OPENED_BY_OTHERS = frozenset(
    {
        "behind",
        "unserved",
        "held",
        "max_running",
        "tenant_moving",
        "tenant_held",
        "tenant_max_running",
    }
)
