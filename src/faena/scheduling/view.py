"""Views of schedules: their state and next instants. Reading writes nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from faena.engine import Engine
from faena.engine.calls.scheduling import Stored, names_at, read
from faena.errors import PayloadError
from faena.scheduling.declare import Declared
from faena.scheduling.due import Mark, Schedule, job_id
from faena.values.names import is_name
from faena.values.view import View

_FIRST_LOOK_US: Final = 60_000_000
_LONGEST_LOOK_US: Final = 20 * 366 * 86_400_000_000
_MOST_STEPS: Final = 5_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class ScheduleView(View, frozen=True, kw_only=True):
    """The state of a schedule. Instants are the server's microseconds."""

    name: str
    queue: str
    task: str
    when: str
    """The timing for people: `0 2 * * * Europe/Madrid`, `every 6h`."""
    state: str
    """active, paused, over, or not started: in code, but not yet stored by a worker."""
    next_at: int | None
    last_at: int | None
    """The last instant that was fired."""
    last_job: str | None
    """The id of its job; `overlap` may have prevented the job."""
    fired: int
    terms: dict[str, Any]
    """The options in effect, as stored."""
    edits: dict[str, Mark]
    """Options that were changed at run time, by whom and when."""
    is_declared: bool
    """Whether this program's code declares it."""
    declared_at: int | None
    """When code last declared it; None if it was created at run time."""
    since: Mark

    def to_dict(self) -> dict[str, Any]:
        """As a dict, without the payload of its jobs."""
        told = View.to_dict(self)
        told["terms"].pop("payload", None)
        return told

    paused: Mark | None


class ScheduleReader:
    """Reads all schedules of some queues, including those in code that are not stored yet."""

    def __init__(
        self, engine: Engine, queues: Sequence[str], declared: Mapping[str, Declared]
    ) -> None:
        self._engine = engine
        self._queues = queues
        self._declared = declared

    async def all(self) -> list[ScheduleView]:
        """All schedules, in the order of their due instants."""
        found: list[ScheduleView] = []
        written: set[str] = set()
        for queue in self._queues:
            async for names in names_at(self._engine, queue):
                _, stored = await read(self._engine, queue, names)
                written.update(stored)
                for one in stored.values():
                    with contextlib.suppress(PayloadError):  # written by a later version
                        found.append(view_of(queue, Schedule.of(one), self._declared))
        found += [
            view_of(*await self._unwritten(one), self._declared)
            for one in self._declared.values()
            if one.name not in written
        ]
        return sorted(found, key=lambda one: (one.next_at is None, one.next_at, one.name))

    async def find(self, name: str) -> tuple[str, Schedule] | None:
        """One schedule and its queue."""
        if not is_name(name):
            return None
        stored, known = await self.find_stored(name), self._declared.get(name)
        if stored is not None:
            return stored[0], Schedule.of(stored[1])
        return None if known is None else await self._unwritten(known)

    async def find_stored(self, name: str) -> tuple[str, Stored] | None:
        """A stored schedule; searched in the queue in code first, then in the others."""
        if not is_name(name):
            return None
        known = self._declared.get(name)
        for queue in [*([known.queue] if known else []), *self._queues]:
            _, found = await read(self._engine, queue, [name])
            if name in found:
                return queue, found[name]
        return None

    async def _unwritten(self, known: Declared) -> tuple[str, Schedule]:
        now, _ = await read(self._engine, known.queue, [])
        return known.queue, known.unwritten(now)


def view_of(queue: str, schedule: Schedule, declared: Mapping[str, Declared]) -> ScheduleView:
    """The view of a schedule; `declared` are those in this program's code."""
    record, own = schedule.record, declared.get(schedule.name)
    terms = record.terms
    return ScheduleView(
        name=schedule.name,
        queue=queue,
        task=terms.task,
        when=terms.describe(),
        state=_state(schedule),
        next_at=schedule.due,
        last_at=record.last,
        last_job=None if record.last is None else job_id(schedule.name, record.last),
        fired=record.fired,
        terms=msgspec.to_builtins(terms),
        edits={name: Mark(edit.by, edit.at) for name, edit in record.edits.items()},
        is_declared=own is not None and own.queue == queue,
        declared_at=record.declared_at,
        since=record.since,
        paused=record.paused,
    )


def _state(schedule: Schedule) -> str:
    if schedule.record.paused is not None:
        return "paused"
    if schedule.due is None:
        return "over"
    return "active" if schedule.version else "not started"


class PastInstant(View, frozen=True, kw_only=True):
    """An instant of a schedule that has passed. Instants are the server's microseconds."""

    at: int
    job: str
    """The id that its job has, or would have had."""
    is_fired: bool
    """Whether the schedule has come that far; if not, it was paused, or nobody fired it."""


def passed(schedule: Schedule, number: int, now: int) -> list[PastInstant]:
    """The last instants before now, the newest first, by the timing of today.

    Those from before it was created are left out. At most some thousands are computed.
    """
    record = schedule.record
    terms, since = record.terms, record.since.at
    found, window, start = list[int](), _FIRST_LOOK_US, now
    while len(found) < number and since < start and window <= _LONGEST_LOOK_US:
        start = max(since, now - window)
        at = terms.following(start - 1)
        found.clear()
        while at is not None and at <= now and len(found) < _MOST_STEPS:
            found.append(at)
            at = terms.following(at)
        window *= 8
    return [
        PastInstant(
            at=one,
            job=job_id(schedule.name, one),
            is_fired=record.last is not None and one <= record.last,
        )
        for one in reversed(found[-number:])
    ]


def coming(schedule: Schedule, number: int) -> list[datetime]:
    """The next instants of a schedule, at most `number`."""
    record, due = schedule.record, schedule.due
    terms, instants = record.terms, list[datetime]()
    left = number if terms.count is None else min(number, terms.count - record.fired)
    while due is not None and len(instants) < left:
        instants.append(_EPOCH + timedelta(microseconds=due))
        due = terms.following(due)
    return instants
