"""The exact instants at which jobs became ready, out of the events that a queue still has.

Streams of events keep some hundred batches (`events_kept`), so this is the last part of a window:
minutes of a quiet queue, seconds of a busy one. A job that came one by one while all slots were in
use is told with the next call of a worker, some milliseconds late.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, NamedTuple

from faena.engine import Engine
from faena.sharding.router import Routers
from faena.telemetry.events import Event, Reader

_MADE_READY: Final = ("promoted", "unblocked", "released", "rescued", "rerun")
_MAYBE_LATER: Final = ("enqueued", "retried", "snoozed", "limited", "parked")
"""Ready at once, unless `promoted` or `unblocked` follows."""
_GONE: Final = ("cancelled", "removed", "replaced", "dead", "moved_out")
_KINDS: Final = frozenset((*_MADE_READY, *_MAYBE_LATER, *_GONE, "claimed", "gap"))


class Arrival(NamedTuple):
    """One attempt that became ready."""

    at_us: int
    task: str | None
    tenant: str | None
    """None if it has none, or was removed meanwhile."""


class Exact(NamedTuple):
    """What is known exactly."""

    since_us: int
    """From here on, it is all that came."""
    arrivals: list[Arrival]


class Wanted(NamedTuple):
    """What is asked for."""

    queue: str
    since_us: int
    until_us: int
    waiting: int
    """Jobs that have come and wait now: so many of those that nobody has claimed count."""
    is_ordered: bool
    """Whether jobs wait behind others: they come when they are enqueued, not with their turn."""


class _Told:
    """What the events of one shard tell, one after another."""

    def __init__(self, *, is_ordered: bool) -> None:
        self._is_ordered = is_ordered
        self.claimed: list[Arrival] = []
        self._ready: dict[str, Arrival] = {}
        self._maybe: dict[str, Arrival] = {}

    def note(self, event: Event) -> None:
        """Take in the next event."""
        job = event.job
        if job is None:
            return
        known = self._maybe.pop(job, None) or self._ready.pop(job, None)
        if event.name == "claimed":
            if known is not None:
                self.claimed.append(known)
        elif event.name == "unblocked" and self._is_ordered and known is not None:
            self._ready[job] = known
        elif event.name not in _GONE:
            made = Arrival(event.at, event.task, event.tenant)
            (self._ready if event.name in _MADE_READY else self._maybe)[job] = made

    def waiting(self) -> list[Arrival]:
        """Those that were not claimed yet, surely ready ones first."""
        return [*self._ready.values(), *self._maybe.values()]


async def exact_arrivals(engine: Engine, routers: Routers, wanted: Wanted) -> Exact:
    """The arrivals of a window as far back as its events are kept."""
    since_us, until_us = wanted.since_us, wanted.until_us
    reader = Reader(engine, routers, [wanted.queue], kinds=_KINDS, has_details=True)
    await reader.begin(datetime.fromtimestamp(since_us / 1e6, UTC))
    begun, found, waiting, is_told = since_us, list[Arrival](), list[Arrival](), False
    for shard in reader.shards():
        told = _Told(is_ordered=wanted.is_ordered)
        for event in await _all_of(reader, shard, until_us):
            is_told = True
            if event.name == "gap":
                begun = max(begun, event.at)
            told.note(event)
        found += told.claimed
        waiting += told.waiting()
    if not is_told:
        return Exact(until_us, [])
    return Exact(begun, _within(begun, until_us, [*found, *waiting[: wanted.waiting]]))


async def _all_of(reader: Reader, shard: str, until_us: int) -> list[Event]:
    events = list[Event]()
    while True:
        before = reader.positions()
        read = await reader.read(shard)
        events += read
        if reader.positions() == before or (read and read[-1].at >= until_us):
            return events


def _within(since_us: int, until_us: int, arrivals: Iterable[Arrival]) -> list[Arrival]:
    # By instant only: a job may have no tenant, which no name can be compared with.
    within = (one for one in arrivals if since_us <= one.at_us < until_us)
    return sorted(within, key=lambda one: one.at_us)
