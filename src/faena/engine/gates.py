"""What stands before jobs: the answers of the scripts `explain` and `tenant`, as they tell it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from faena.engine.scripts import text_pairs


class ClosedGate(NamedTuple):
    """A gate that keeps a job, or all jobs of a lane, from being claimed."""

    name: str
    detail: str
    """What the script says of it: a reason, a limit, a number."""
    until: int | None
    """When it opens by itself."""


class Waiting(NamedTuple):
    """A job at one shard, and what stands before it."""

    now: int
    state: str
    """Empty when the shard has no such job."""
    gates: tuple[ClosedGate, ...]
    ahead: int
    claimed_before: int
    """Claims of the shard in the last full minute."""
    claimed_now: int
    """Claims in the minute that runs."""


class LaneState(NamedTuple):
    """What is decided for one lane at a shard, and how it stands there."""

    override: dict[str, str]
    live: int
    running: int
    parked_until: float | None
    """When a parked lane is looked at again."""
    gates: tuple[ClosedGate, ...]


def read_waiting(reply: Sequence[Any]) -> Waiting:
    """The answer of `explain`."""
    now, state, gates, ahead, before, this = reply
    return Waiting(now, state.decode(), _gates(gates), ahead, int(before), int(this))


def read_lane_state(reply: Sequence[Any]) -> LaneState:
    """The answer of `tenant`."""
    override, live, running, again, gates = reply
    parked_until = float(again) if again else None
    return LaneState(text_pairs(override), live, running, parked_until, _gates(gates))


def _gates(flat: Sequence[Any]) -> tuple[ClosedGate, ...]:
    return tuple(
        ClosedGate(flat[i].decode(), flat[i + 1].decode(), int(flat[i + 2]) or None)
        for i in range(0, len(flat), 3)
    )
