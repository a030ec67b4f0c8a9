"""The gates that keep jobs waiting: the answers of the scripts `explain` and `tenant`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from faena.engine.scripts import text_pairs


class ClosedGate(NamedTuple):
    """A gate that prevents the claim of a job, or of all jobs in a lane."""

    name: str
    detail: str
    """Details of the gate: a reason, a limit, a number."""
    until: int | None
    """When it opens without an action, if that is known."""


class Waiting(NamedTuple):
    """A job in one shard, with the gates before it."""

    now: int
    state: str
    """Empty when the shard has no such job."""
    gates: tuple[ClosedGate, ...]
    ahead: int
    claimed: tuple[int, ...] = (0, 0)
    """Claims of the shard in the current minute, in the one before, and so on."""
    facts: dict[str, str] = {}  # noqa: RUF012 - never changed


class LaneState(NamedTuple):
    """The settings and the state of one lane in a shard."""

    override: dict[str, str]
    live: int
    running: int
    parked_until: float | None
    """When a parked lane is checked again."""
    gates: tuple[ClosedGate, ...]


def read_waiting(reply: Sequence[Any]) -> Waiting:
    """The answer of `explain`."""
    now, state, gates, ahead, claimed, facts = reply
    minutes = tuple(int(one) for one in claimed)
    return Waiting(now, state.decode(), _gates(gates), ahead, minutes, text_pairs(facts))


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
