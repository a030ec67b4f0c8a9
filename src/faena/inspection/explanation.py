"""Why a job is where it is, in facts and in words. Instants are the server's microseconds."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from faena.engine.calls.upstreams import UpstreamView
from faena.engine.gates import Waiting
from faena.inspection.ended import Past
from faena.inspection.gate import Gate, gates_of, of_upstream, rounded
from faena.inspection.reason import Reason
from faena.inspection.reasons_of import of_past, of_waiting
from faena.inspection.start import ExpectedStart, Pace, expected_start
from faena.options import BatchOptions
from faena.states import FINISHED, State
from faena.values.duration import describe
from faena.values.view import View

_MINUTE_US = 60_000_000
_SETTLED = FINISHED | {State.RUNNING}
_ENDED_BY_JOBS = frozenset({"max_running", "tenant_max_running"})


class Explanation(View, frozen=True, kw_only=True):
    """Why a job is where it is, what must happen next, and when it should start."""

    also = ("reasons", "next", "expected_start")

    id: str
    queue: str
    state: State | None
    """None when the queue has no such job; `reasons` tells whether it is still to come."""

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

    source: str = "broker"
    """Where it was found: broker, history, flow, outbox, or nowhere."""
    task: str | None = None
    tenant: str | None = None
    attempts_made: int = 0
    error: str | None = None
    """Name and message of its last error."""
    expires_at: int | None = None
    """It is cancelled unless it starts before."""
    delayed_by: str = "delayed"
    """Of a delayed job: delayed, retry, snoozed or parked."""
    behind: str | None = None
    """Of a blocked job: order or unique."""
    lane_ahead: int | None = None
    """Jobs of its tenant that come first; None where tenants take no turns."""
    claimed: tuple[int, ...] = ()
    """Jobs of its queue, or shard, started in this minute, in the one before, and so on."""
    lane_claimed: tuple[int, ...] = ()
    """Those of its tenant."""
    sure_at: int = 0
    """Limits do not let it start before, whatever else happens."""
    likely_at: int = 0
    """The same, if all jobs that seem to come first are started first."""
    others: int = 0
    """Jobs that may come first though `ahead` does not count them: those that are due before its
    gates open, and of a delayed job those that are ready now."""
    beside: tuple[Reason, ...] = ()
    """Reasons that are no gates of its queue: a flow, a group, a move, an outbox."""
    waits_for: tuple[Explanation, ...] = ()
    """Explanations of jobs that it waits for, the first ones only."""

    @property
    def is_waiting(self) -> bool:
        """Whether the job is there and has not started."""
        return self.state is not None and self.state not in _SETTLED

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why it is where it is; at least one."""
        if self.state is not None and self.past is not None and not self.is_waiting:
            return (*of_past(self, self.past), *self.beside)
        return (*self.beside, *(of_waiting(self) if self.is_waiting else ()))

    @property
    def next(self) -> tuple[str, ...]:
        """What must happen next, a sentence for each thing; nothing for a job that has ended."""
        return tuple(dict.fromkeys(one.next for one in self.reasons if one.next))

    @property
    def expected_start(self) -> ExpectedStart | None:
        """When it should start, and how that is known; None for a job that does not wait."""
        return expected_start(self)

    @property
    def expected_at(self) -> int | None:
        """When it should start; None if unknown: nothing was claimed recently, an operator must
        act first, or a running job must end (of that, `expected_start` has an estimate).
        """
        if any(gate.name in _ENDED_BY_JOBS for gate in self.gates):
            return None
        start = self.expected_start
        return start.at if start else None

    @property
    def is_earliest(self) -> bool:
        """Whether it can only be said that the job does not start before `expected_at`: it waits
        for an upstream, and what comes then depends on a probe or on the next calls.
        """
        return bool(self.upstreams) and self.expected_at is not None

    @property
    def pace(self) -> tuple[str, int, Pace | None]:
        """How many jobs of what come first, and how fast those are started: of its tenant, where
        anything of it was started lately."""
        own = Pace.of(self.lane_claimed, self.at) if self.lane_claimed else None
        is_bound = any(gate.name == "tenant_max_running" for gate in self.gates)
        if self.lane_ahead is not None and (own is not None or is_bound):
            return "tenant", self.lane_ahead, own
        return "queue", self.ahead, Pace.of(self.claimed, self.at)

    def __str__(self) -> str:
        if self.state is None:
            return self.reasons[0].words if self.reasons else self._unknown()
        if self.state in _SETTLED:
            told = self.past.words(self.state) if self.past else f"is {self.state.value}"
            return f"job {self.id} is not waiting: it {told}"
        return f"job {self.id} is {self.state.value}: {'; '.join(map(self._words, self.reasons))}"

    def _words(self, reason: Reason) -> str:
        if reason.until is None or reason.until <= self.at:
            return reason.words
        return f"{reason.words}, for another {describe(rounded(reason.until - self.at))}"

    def _unknown(self) -> str:
        return f"queue {self.queue} has no job {self.id}"


def explanation_of(queue: str, job_id: str, found: Waiting) -> Explanation:
    """What a shard has found, in the words of the API."""
    facts, elapsed_us = found.facts, _MINUTE_US + found.now % _MINUTE_US
    lane_ahead = facts.get("lane_ahead")
    return Explanation(
        id=job_id,
        queue=queue,
        state=State(found.state) if found.state else None,
        at=found.now,
        gates=gates_of(found.gates),
        ahead=found.ahead,
        rate=sum(found.claimed[:2]) / (elapsed_us / 1e6),
        source="broker" if found.state else "nowhere",
        delayed_by=facts.get("delayed_by", "delayed"),
        behind=_behind(facts),
        lane_ahead=None if lane_ahead is None else int(lane_ahead),
        claimed=found.claimed,
        lane_claimed=tuple(int(one) for one in facts.get("lane_pace", "").split()),
        sure_at=int(facts.get("sure_at", 0)),
        likely_at=int(facts.get("likely_at", 0)),
        others=int(facts.get("others", 0)),
    )


def _behind(facts: dict[str, str]) -> str | None:
    by = facts.get("by")
    return None if by is None else "unique" if by == "unique" else "order"


def with_upstreams(told: Explanation, views: Sequence[UpstreamView]) -> Explanation:
    """An explanation with the state of the upstreams that its job waits for."""
    known = {view.name: view for view in views}
    gates = tuple(of_upstream(gate, known, told.at) for gate in told.gates)
    return msgspec.structs.replace(told, gates=gates, upstreams=tuple(views))


def with_batch(told: Explanation, batch: BatchOptions) -> Explanation:
    """An explanation of a job whose worker may be gathering others before it calls the handler."""
    since = told.past.at if told.past and told.state is State.RUNNING else None
    if since is None or since + batch.wait_us <= told.at:
        return told
    words = f"its worker may be gathering a batch of up to {batch.size} jobs"
    reason = Reason(code="gathering", words=words, until=since + batch.wait_us)
    return msgspec.structs.replace(told, beside=(*told.beside, reason))
