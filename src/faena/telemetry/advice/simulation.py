"""Plays arrivals through a queue with some slots, limits and turns: a discrete-event simulation.

It knows what decides when a job starts: slots, exact sliding limits of the queue and of each
tenant, how many jobs of a tenant run, fair turns by weight. It does not know priorities, orders by
key, and the milliseconds between a job and the next one of a slot.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

Report = Callable[[int], None]

_TOLD: Final = 50_000
"""Jobs between two reports."""
_NEVER: Final = float("inf")


class Window(NamedTuple):
    """At most `most` starts in any `per_s`."""

    most: int
    per_s: float


class Arrivals(NamedTuple):
    """Jobs in the order in which they became ready; instants in seconds."""

    at: Sequence[float]
    service_s: Sequence[float]
    tenant: Sequence[int]
    """Empty if tenants do not matter; else a number from 0 for each."""
    tenants: Sequence[str] = ()
    """Their names by number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What decides which job starts when."""

    slots: int
    limits: Sequence[Window] = ()
    tenant_limits: Sequence[Window] = ()
    tenant_most: int | None = None
    """Jobs of a tenant that run at a time."""
    weights: Mapping[int, float] = field(default_factory=dict[int, float])
    by_time: bool = False
    """Whether turns count run times and not jobs."""


class Played(NamedTuple):
    """How long each job waited, and when the last one ended."""

    waits_s: list[float]
    ended: float
    busy_s: float
    """Run times added up."""


def play(arrivals: Arrivals, rules: Rules, report: Report | None = None) -> Played:
    """Play all arrivals until the last one has ended; `report` gets the number of jobs so far."""
    told = report or _nobody
    if arrivals.tenant:
        return _Turns(arrivals, rules, told).play()
    return _in_line(arrivals, rules, told)


def _nobody(_: int) -> None:
    pass


def _in_line(arrivals: Arrivals, rules: Rules, told: Report) -> Played:
    """First come, first served: each start follows from the one before it."""
    free = [0.0] * rules.slots if rules.slots <= len(arrivals.at) else [0.0] * len(arrivals.at)
    rings = [(deque[float](maxlen=one.most), one.most, one.per_s) for one in rules.limits]
    waits, last, ended = list[float](), 0.0, 0.0
    replace, note = heapq.heapreplace, waits.append
    for number, (at, service_s) in enumerate(zip(arrivals.at, arrivals.service_s, strict=True)):
        start = max(at, free[0], last)
        for ring, most, per_s in rings:
            if len(ring) == most:
                start = max(start, ring[0] + per_s)
        for ring, _, _ in rings:
            ring.append(start)
        last, end = start, start + service_s
        replace(free, end)
        ended = max(ended, end)
        note(start - at)
        if number % _TOLD == 0:
            told(number)
    told(len(waits))
    return Played(waits, ended, sum(arrivals.service_s))


class _Limits:
    """Sliding windows of starts."""

    __slots__ = ("_rings",)

    def __init__(self, limits: Sequence[Window]) -> None:
        self._rings = [(deque[float](maxlen=one.most), one.most, one.per_s) for one in limits]

    def opens_at(self) -> float:
        """When the next start is permitted."""
        at = 0.0
        for ring, most, per_s in self._rings:
            if len(ring) == most and ring[0] + per_s > at:
                at = ring[0] + per_s
        return at

    def note(self, now: float) -> None:
        """Count a start."""
        for ring, _, _ in self._rings:
            ring.append(now)


class _Lane:
    """One tenant: its waiting jobs, and when its next turn is."""

    __slots__ = ("cost", "limits", "number", "running", "turn", "waiting")

    def __init__(self, number: int, rules: Rules) -> None:
        self.number, self.waiting = number, deque[int]()
        self.limits = _Limits(rules.tenant_limits) if rules.tenant_limits else None
        self.cost = 1 / rules.weights.get(number, 1.0)
        """How much later the next turn is."""
        self.running, self.turn = 0, 0.0


class _Turns:
    """Tenants take turns, as the scripts of the engine have them do."""

    def __init__(self, arrivals: Arrivals, rules: Rules, told: Report) -> None:
        self._arrivals, self._rules, self._told = arrivals, rules, told
        self._limits = _Limits(rules.limits) if rules.limits else None
        self._most = rules.tenant_most or rules.slots
        self._lanes = [_Lane(one, rules) for one in range(max(arrivals.tenant) + 1)]
        self._ring: list[tuple[float, int]] = []
        """Lanes that may start a job, by their turn: those with waiting jobs, room and no limit."""
        self._parked: list[tuple[float, int]] = []
        """Lanes that wait for a limit, by when it opens."""
        self._ends: list[tuple[float, int]] = []
        self._waits = [0.0] * len(arrivals.at)
        self._virtual, self._free, self._started, self._ended = 0.0, rules.slots, 0, 0.0

    def play(self) -> Played:
        """From event to event, until all jobs have ended."""
        at, tenant, lanes, ends = self._arrivals.at, self._arrivals.tenant, self._lanes, self._ends
        coming, number, now = at[0], 0, 0.0
        while coming < _NEVER or ends or self._parked or self._ring:
            now = self._next_instant(coming, now)
            while ends and ends[0][0] <= now:
                self._end(lanes[heapq.heappop(ends)[1]])
            while self._parked and self._parked[0][0] <= now:
                lane = lanes[heapq.heappop(self._parked)[1]]
                heapq.heappush(self._ring, (lane.turn, lane.number))
            while coming <= now:
                self._arrive(lanes[tenant[number]], number)
                number += 1
                coming = at[number] if number < len(at) else _NEVER
            if self._free and self._ring:
                self._start(now)
        self._told(len(at))
        return Played(self._waits, self._ended, sum(self._arrivals.service_s))

    def _next_instant(self, coming: float, now: float) -> float:
        at = self._ends[0][0] if self._ends and self._ends[0][0] < coming else coming
        if self._parked and self._parked[0][0] < at:
            at = self._parked[0][0]
        if self._limits is not None and self._ring and self._free:
            at = min(at, self._limits.opens_at())
        return max(now, at)

    def _arrive(self, lane: _Lane, job: int) -> None:
        """A lane that has jobs again gets no turns for the time that it had none."""
        if not lane.waiting and lane.running < self._most:
            lane.turn = max(lane.turn, self._virtual)
            heapq.heappush(self._ring, (lane.turn, lane.number))
        lane.waiting.append(job)

    def _end(self, lane: _Lane) -> None:
        self._free += 1
        lane.running -= 1
        if lane.running == self._most - 1 and lane.waiting:
            lane.turn = max(lane.turn, self._virtual)
            heapq.heappush(self._ring, (lane.turn, lane.number))

    def _start(self, now: float) -> None:
        """Give free slots to the lanes whose turn is earliest."""
        ring, limits = self._ring, self._limits
        while self._free and ring and (limits is None or limits.opens_at() <= now):
            turn, number = ring[0]
            lane = self._lanes[number]
            if lane.limits is not None and (opens_at := lane.limits.opens_at()) > now:
                heapq.heappop(ring)
                heapq.heappush(self._parked, (opens_at, number))
                continue
            self._run(lane, now)
            self._virtual = max(self._virtual, turn)
            if lane.waiting and lane.running < self._most:
                heapq.heapreplace(ring, (lane.turn, number))
            else:
                heapq.heappop(ring)

    def _run(self, lane: _Lane, now: float) -> None:
        job = lane.waiting.popleft()
        service_s = self._arrivals.service_s[job]
        end = now + service_s
        self._waits[job] = now - self._arrivals.at[job]
        if self._limits is not None:
            self._limits.note(now)
        if lane.limits is not None:
            lane.limits.note(now)
        lane.running += 1
        lane.turn += service_s * lane.cost if self._rules.by_time else lane.cost
        self._free -= 1
        self._ended = max(self._ended, end)
        heapq.heappush(self._ends, (end, lane.number))
        self._started += 1
        if self._started % _TOLD == 0:
            self._told(self._started)
