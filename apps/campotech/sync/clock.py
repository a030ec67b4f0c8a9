"""Vector clocks: which of two changes knew of the other.

A clock counts the changes of each device that its owner had seen. A change is *after* a state if
it had seen all of it, *before* if the state has seen the change, and *concurrent* if neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

Clock = Mapping[str, int]


class Relation(Enum):
    """How a clock stands to another."""

    SAME = "same"
    AFTER = "after"
    BEFORE = "before"
    CONCURRENT = "concurrent"


def compare(one: Clock, other: Clock) -> Relation:
    """How the first stands to the second; a device that is missing has made no change."""
    is_ahead = any(count > other.get(device, 0) for device, count in one.items())
    is_behind = any(count > one.get(device, 0) for device, count in other.items())
    if is_ahead and is_behind:
        return Relation.CONCURRENT
    if is_ahead:
        return Relation.AFTER
    return Relation.BEFORE if is_behind else Relation.SAME


def merge(one: Clock, other: Clock) -> dict[str, int]:
    """What is known by both together."""
    devices = sorted({*one, *other})
    return {device: max(one.get(device, 0), other.get(device, 0)) for device in devices}
