"""How long jobs wait for a slot: Erlang's formula, corrected for how much their run times differ.

Pure numbers. `load` is how many slots are in use on average: arrivals per second times seconds per
job. Erlang C is exact for arrivals at random and exponential run times (M/M/c). For other run times
the wait is multiplied as Allen and Cunneen do, by `variability`: (1 + cv²) / 2, where cv is the
standard deviation of run times divided by their mean: 1 for exponential ones, 0.5 for equal ones.
Arrivals are always taken to be random.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

TARGET: Final = 0.7
"""The part of slots that should be in use on average; the rest is for what comes in bursts."""
LATE: Final = 0.05
"""The part of jobs that may wait longer than the objective."""
MOST_SLOTS: Final = 1_000_000
_ROUNDING: Final = 1e-9


class Load(NamedTuple):
    """What comes to a queue, and how long each attempt takes."""

    rate: float
    """Attempts that become ready, per second."""
    service_s: float
    variability: float = 1.0

    @property
    def erlangs(self) -> float:
        """Slots in use on average, if there are enough."""
        return self.rate * self.service_s


def busy_probability(slots: int, load: float) -> float:
    """The part of jobs that find all slots in use (Erlang C); 1 if the slots cannot keep up."""
    if load <= 0:
        return 0.0
    if load >= slots:
        return 1.0
    blocked = next(one for count, one in _blocked(load) if count == slots)
    return _busy(slots, load, blocked)


def part_later_than(wait_s: float, slots: int, load: Load) -> float:
    """The part of jobs that wait longer than that; 1 if the slots cannot keep up."""
    return _later(wait_s, slots, load, busy_probability(slots, load.erlangs))


def wait_s(slots: int, load: Load, late: float = LATE) -> float | None:
    """The wait that only this part of jobs exceeds; None if the slots cannot keep up."""
    spare = slots - load.erlangs
    if spare <= 0:
        return None
    busy = busy_probability(slots, load.erlangs)
    if busy <= late:
        return 0.0
    return load.service_s * load.variability / spare * math.log(busy / late)


def slots_for_wait(objective_s: float, load: Load, late: float = LATE) -> int | None:
    """The smallest number of slots with which at most `late` of jobs wait longer.

    None if it would be more than a million.
    """
    erlangs = load.erlangs
    if erlangs <= 0:
        return 1
    if erlangs >= MOST_SLOTS:
        return None
    for slots, blocked in _blocked(erlangs):
        if slots > erlangs:
            busy = _busy(slots, erlangs, blocked)
            if _later(objective_s, slots, load, busy) <= late:
                return slots
        if slots == MOST_SLOTS:
            break
    return None


def slots_for_target(load: Load) -> int:
    """The number of slots of which 70 % are in use on average, by Little's law: at least 1."""
    return max(1, math.ceil(load.erlangs / TARGET - _ROUNDING))


def _later(wait_s: float, slots: int, load: Load, busy: float) -> float:
    spare = slots - load.erlangs
    if spare <= 0:
        return 1.0
    if load.service_s <= 0:
        return 0.0
    return busy * math.exp(-spare * wait_s / (load.service_s * load.variability))


def _blocked(load: float) -> Iterator[tuple[int, float]]:
    """Erlang B for 1, 2, 3 … slots: each out of the one before, so no factorial can overflow."""
    blocked, slots = 1.0, 0
    while True:
        slots += 1
        blocked = load * blocked / (slots + load * blocked)
        yield slots, blocked


def _busy(slots: int, load: float, blocked: float) -> float:
    """Erlang C out of Erlang B."""
    return blocked / (1 - load / slots * (1 - blocked))
