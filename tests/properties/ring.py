"""The model of lanes: whose turn it is, who may not be served, and what was decided for whom.

Turns are as in start-time fair queueing: serving a lane brings virtual time to its turn and sets
the next one 1/weight later. Which jobs a lane holds is not kept here but read from the jobs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

FULL = 1e18
QUANTUM, ROUNDS, WIDEST = 25, 12, 32
SETTINGS = ("limits", "max_running", "weight", "size")

Control = dict[str, Any]
Window = list[tuple[int, int]]


@dataclass
class Visit:
    """A lane whose turn it is in a claim."""

    lane: str
    turn: float
    room: int
    weight: float = 1
    control: Control | None = None
    share: int = 0


@dataclass
class Ring:
    """The lanes of a queue that have ready jobs, and what those without one owe."""

    turns: dict[str, float] = field(default_factory=dict)
    parked: dict[str, float] = field(default_factory=dict)
    debts: dict[str, float] = field(default_factory=dict)
    controls: dict[str, Control] = field(default_factory=dict)
    windows: dict[str, Window] = field(default_factory=dict)
    virtual: float = 0

    # -- coming and going -------------------------------------------------------------------------

    def enter(self, lane: str) -> None:
        if lane not in self.parked and lane not in self.turns:
            self.turns[lane] = max(self.virtual, self.debts.pop(lane, 0))

    def quit(self, lane: str) -> None:
        turn = self.turns.pop(lane, 0)
        self.parked.pop(lane, None)
        if turn > self.virtual:
            self.debts[lane] = turn

    def park(self, lane: str, turn: float, until: float) -> None:
        self.parked[lane] = until
        if turn > self.virtual:
            self.debts[lane] = turn

    def unpark(self, lanes: list[str]) -> None:
        for lane in lanes:
            if self.parked.pop(lane, None) is not None:
                self.enter(lane)

    def unpark_due(self, now: int, *, is_sweep: bool) -> None:
        self.unpark([lane for lane, until in self.parked.items() if until <= now])
        if is_sweep:
            self.free(list(self.parked))

    def free(self, lanes: list[str]) -> None:
        """Lanes that waited for one of their jobs to end."""
        self.unpark([lane for lane in lanes if self.parked.get(lane, 0) >= FULL])

    def free_ended(self, lanes: list[str], now: int) -> None:
        """Lanes of jobs that have ended; a maximum of its own may end before one of its jobs."""
        self.free(lanes)
        for lane in {lane for lane in lanes if lane in self.parked}:
            if {"max_running", "ends_at"} <= (self.control(lane, now) or {}).keys():
                self.unpark([lane])

    def look_at_all(self) -> None:
        self.parked = dict.fromkeys(self.parked, 0.0)

    # -- what was decided for a lane ---------------------------------------------------------------

    def control(self, lane: str, now: int) -> Control | None:
        """As it counts at this instant; one that no longer does is forgotten."""
        known = self.controls.get(lane)
        if known is None:
            return None
        control = _in_force(known, now)
        if control is None:
            del self.controls[lane]
        return control

    def decide(self, lane: str, now: int, by: str, changes: dict[str, str], us: int | None) -> None:
        control = self.control(lane, now) or {}
        for name, text in changes.items():
            _change(control, name, text, now)
            if name in SETTINGS:
                control["ends_at"] = None if us is None else now + us
        control |= {"by": by, "at": now}
        if all(control.get(name) is None for name in SETTINGS):
            control.pop("ends_at", None)
        kept = _in_force({name: of for name, of in control.items() if of is not None}, now)
        self.controls.pop(lane, None)
        if kept is not None:
            self.controls[lane] = kept
        self.unpark([lane])

    def hold(self, lane: str, until: int, now: int) -> None:
        """A provider asked for it; a longer hold stays."""
        control = self.control(lane, now) or {"by": "handler", "at": now}
        if control.get("held_until") != 0 and control.get("held_until", 0) < until:
            control |= {"held_until": until, "reason": "rate_limited"}
            self.controls[lane] = control
        self.park(lane, self.turns.pop(lane, 0), control["held_until"] or FULL)

    # -- limits -----------------------------------------------------------------------------------

    def entries(self, lane: str, per: int, now: int) -> Window:
        """What is still in a window; the stored value changes only with a claim."""
        kept = list(self.windows.get(f"claims:{per}{lane}", []))
        while kept and kept[0][0] <= now - per:
            kept.pop(0)
        return kept

    def window_room(self, lane: str, limit: tuple[int, int], now: int) -> tuple[int, float]:
        most, per = limit
        entries = self.entries(lane, per, now)
        return most - sum(number for _, number in entries), (
            entries[0][0] if entries else now
        ) + per

    # -- turns ------------------------------------------------------------------------------------

    def serve(
        self,
        number: int,
        quantum: int,
        visit: Callable[[str, float, int], Visit | float],
        take: Callable[[Visit], tuple[int, bool]],
    ) -> None:
        """Share `number` out.

        `visit` tells a lane's room, or when to look at it again; `take` takes its share and tells
        how many there were, and whether the lane is empty now.
        """
        before = self.virtual
        least = 1
        for _ in range(ROUNDS):
            asked = max(least, math.ceil(number / quantum)) if number > 0 else 0
            first = sorted(self.turns, key=lambda lane: (self.turns[lane], lane.encode()))[:asked]
            if not first:
                break
            visits = self._visits(first, number, visit)
            if len(first) < asked or not self.turns:
                _allot(visits, number)
            else:
                _allot_quanta(visits, number, min(quantum, math.ceil(number / asked)))
            taken = sum(self._take(one, take) for one in visits)
            number -= taken
            if number <= 0:
                break
            each = max(1, taken // len(first))
            least = math.ceil(number / each) if taken else min(WIDEST, 2 * asked)
        if self.virtual > before:
            self.debts = {lane: turn for lane, turn in self.debts.items() if turn > self.virtual}

    def _visits(
        self, lanes: list[str], number: int, visit: Callable[[str, float, int], Visit | float]
    ) -> list[Visit]:
        turns = [(lane, self.turns.pop(lane)) for lane in lanes]
        open_ones: list[Visit] = []
        for lane, turn in turns:
            found = visit(lane, turn, number)
            if isinstance(found, Visit):
                open_ones.append(found)
            else:
                self.park(lane, turn, found)
        return open_ones

    def _take(self, visit: Visit, take: Callable[[Visit], tuple[int, bool]]) -> int:
        number, is_empty = take(visit) if visit.share else (0, False)
        if visit.share:
            visit.turn -= (visit.share - number) / visit.weight
        if number:
            self.virtual = max(self.virtual, visit.turn - 1 / visit.weight)
        (self.debts if is_empty else self.turns)[visit.lane] = visit.turn
        return number


def _in_force(control: Control, now: int) -> Control | None:
    left = dict(control)
    if left.get("ends_at", math.inf) <= now:
        for name in (*SETTINGS, "ends_at"):
            left.pop(name, None)
    if 0 != left.get("held_until", math.inf) <= now:
        del left["held_until"]
        left.pop("reason", None)
    return left if any(name in left for name in ("held_until", *SETTINGS)) else None


def _change(control: Control, name: str, text: str, now: int) -> None:
    if name == "held_for":
        control["held_until"] = now + int(text)
    elif not text:
        control.pop(name, None)
    else:
        control[name] = text if name in ("limits", "reason") else float(text)


def _allot(visits: list[Visit], number: int) -> None:
    """One by one, always to the earliest turn; at even turns to whom the heap of a claim names."""
    heap = list(visits)
    while number > 0 and heap:
        first = heap[0]
        rival = min([math.inf, *(one.turn for one in heap[1:3])])
        ahead = (rival - first.turn) * first.weight
        given = min(number, first.room - first.share)
        given = min(given, max(1, math.floor(ahead))) if ahead < math.inf else given
        first.share, number = first.share + given, number - given
        first.turn += given / first.weight
        if first.share == first.room:
            heap[0] = heap[-1]
            heap.pop()
        _sift(heap)


def _sift(heap: list[Visit]) -> None:
    i = 0
    while heap:
        below = [j for j in (2 * i + 1, 2 * i + 2) if j < len(heap)]
        least = min([i, *below], key=lambda j: heap[j].turn)
        if least == i:
            return
        heap[i], heap[least] = heap[least], heap[i]
        i = least


def _allot_quanta(visits: list[Visit], number: int, quantum: int) -> None:
    for visit in visits:
        given = min(quantum, visit.room, number)
        visit.share, number = given, number - given
        visit.turn += given / visit.weight
