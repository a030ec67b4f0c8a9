"""How changes of one record from several devices become one state, whatever order they come in.

Each field keeps the stamp of the change that wrote it: its time and its device. Of two concurrent
changes of a field the later one stays; of two at the same time, that of the device whose name comes
last. A change that had seen the state wins over it even if the clock of its device is slow: its
stamp is put behind those that it had seen. The status of a job only goes forwards, so a technician
who has finished it offline is not sent back by a dispatcher who has moved it meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from apps.campotech.sync.clock import Relation, compare, merge

STATUS: Final = "status"
_RANKS: Final = {
    status: rank
    for rank, status in enumerate(
        ("draft", "pending", "scheduled", "en_camino", "in_progress", "cancelled", "completed")
    )
}


class Stamp(NamedTuple):
    """Which change wrote a field."""

    at_us: int
    device: str


@dataclass(frozen=True, slots=True)
class Record:
    """A row: its fields, who wrote each of them, and what it has seen."""

    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stamps: Mapping[str, Stamp] = field(default_factory=dict[str, Stamp])
    clock: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class Change:
    """What a device did."""

    device: str
    at_us: int
    fields: Mapping[str, Any]
    clock: Mapping[str, int]
    """What it had seen, with this change."""


class Merged(NamedTuple):
    """What became of a change."""

    record: Record
    result: str
    """applied: all of it counts; merged: a part of it; superseded: the record had seen it."""


def apply(record: Record, change: Change) -> Merged:
    """The record with the change."""
    relation = compare(change.clock, record.clock)
    if change.clock and relation in (Relation.SAME, Relation.BEFORE):
        return Merged(record, "superseded")
    has_seen = relation is Relation.AFTER and bool(record.clock)
    fields, stamps = {**record.fields}, {**record.stamps}
    lost = 0
    for name, value in change.fields.items():
        stamp = _stamp(change, record.stamps.get(name), has_seen=has_seen)
        if _wins(record, name, value, stamp, has_seen=has_seen):
            fields[name], stamps[name] = value, stamp
        else:
            lost += 1
    made = Record(fields, stamps, merge(record.clock, change.clock))
    return Merged(made, "applied" if not lost else "merged")


def _stamp(change: Change, known: Stamp | None, *, has_seen: bool) -> Stamp:
    at_us = change.at_us
    if has_seen and known is not None:
        at_us = max(at_us, known.at_us + 1)
    return Stamp(at_us, change.device)


def _wins(record: Record, name: str, value: Any, stamp: Stamp, *, has_seen: bool) -> bool:
    known = record.stamps.get(name)
    if known is None or has_seen:
        return True
    if name == STATUS and value != record.fields.get(STATUS):
        return _rank(value) > _rank(record.fields.get(STATUS))
    return stamp > known


def _rank(status: Any) -> int:
    return _RANKS.get(str(status), -1)
