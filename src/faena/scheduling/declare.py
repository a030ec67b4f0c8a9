"""Changes the records of schedules: each change is computed from what was read, and written only if
nobody else has written meanwhile; else it is computed anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from faena.engine import Engine
from faena.engine.calls.scheduling import Change, read, write
from faena.errors import StoreUnavailable
from faena.scheduling.due import Mark, Record, Schedule, unpack
from faena.scheduling.fire import Firer

CODE: Final = "code"
_TRIES: Final = 100
_SAID_US: Final = 60_000_000
"""How often it is written down that code still declares a schedule."""


_log = logging.getLogger("faena.scheduler")


class Declared(NamedTuple):
    """A schedule as code declares it."""

    name: str
    queue: str
    base: Mapping[str, Any]

    def record(self, now: int) -> Record:
        """As it is written down for the first time."""
        return Record(base=dict(self.base), since=Mark(CODE, now), declared_at=now)

    def unwritten(self, now: int) -> Schedule:
        """As it would be if a worker started now."""
        record = self.record(now)
        return Schedule(self.name, "", record, record.first_due(now))


class Kept(NamedTuple):
    """A schedule that was read: `record` is None where there is none."""

    record: Record | None
    due: int | None
    now: int
    is_here: bool = True
    """False of one that was taken away from another queue."""


class Start(NamedTuple):
    """How a schedule begins that is declared for the first time."""

    since: int | None = None
    """From when on it is due; None is now."""
    elsewhere: Sequence[str] = ()
    """The program's other queues: one that code had there has moved."""


_NOW: Final = Start()

Edited = tuple[Record, int | None] | None
"""A record and when it is due; None for no change."""


async def declare(firer: Firer, engine: Engine, declared: Declared, start: Start = _NOW) -> None:
    """Have a schedule be as code says, but for what was edited; what is due stays undisturbed."""
    _, found = await read(engine, firer.queue, [declared.name])
    taken = None if found else await _take_over(engine, declared.name, start.elsewhere)

    def declared_now(kept: Kept) -> Edited:
        return _declared(taken if kept.record is None and taken else kept, declared, start)

    record, due = await change(firer, engine, declared.name, declared_now)
    if record is not None and due is None and record.paused is None and not record.fired:
        when = record.terms.describe()
        _log.warning("schedule %s will never fire: no instant is left, %s", declared.name, when)


async def _take_over(engine: Engine, name: str, queues: Sequence[str]) -> Kept | None:
    """Take a schedule away from the queue on which code declared it before.

    It is gone there before it is here: for a moment it may be nowhere, never in two places.
    """
    for queue in queues:
        now, found = await read(engine, queue, [name])
        record = unpack(found[name].record) if found else None
        if record is None or record.declared_at is None or record.intent is not None:
            continue
        if await give_up(engine, queue, name, found[name].version):
            return Kept(record, found[name].due, now, is_here=False)
    return None


def _declared(kept: Kept, declared: Declared, start: Start) -> Edited:
    record, now, base = kept.record, kept.now, dict(declared.base)
    if record is None:
        fresh = declared.record(now)
        return fresh, fresh.first_due(now if start.since is None else start.since)
    is_said = record.declared_at is not None and now - record.declared_at < _SAID_US
    if record.base == base and is_said and kept.is_here:
        return None
    return redue(kept, replace(record, base=base, declared_at=now))


def redue(kept: Kept, after: Record) -> tuple[Record, int | None]:
    """When a changed schedule is due: as before, unless something that decides it has changed.

    An instant that is overdue this very moment counts, where the new terms have it too.
    """
    before = kept.record
    if before is not None and before.terms.timing == after.terms.timing:
        return after, kept.due
    since = kept.now if kept.due is None else min(kept.now, kept.due - 1)
    return after, after.first_due(since)


async def change(
    firer: Firer, engine: Engine, name: str, edit: Callable[[Kept], Edited]
) -> tuple[Record | None, int | None]:
    """Write what `edit` makes of a schedule; returns the record and its due instant after it."""
    for _ in range(_TRIES):
        now, found = await read(engine, firer.queue, [name])
        schedule = Schedule.of(found[name]) if found else None
        if schedule is not None and schedule.record.intent is not None:
            await _settle(firer, schedule, now)
            continue
        record, due = (schedule.record, schedule.due) if schedule else (None, None)
        edited = edit(Kept(record, due, now))
        if edited is None:
            return record, due
        after, due = edited
        wanted = Change.of(schedule.version if schedule else "", after.pack(), due)
        if await write(engine, firer.queue, name, wanted):
            return after, due
    raise _busy(name)


async def remove(engine: Engine, queue: str, name: str) -> bool:
    """Remove a schedule; False when there is none."""
    for _ in range(_TRIES):
        _, found = await read(engine, queue, [name])
        if name not in found:
            return False
        if await give_up(engine, queue, name, found[name].version):
            return True
    raise _busy(name)


async def give_up(engine: Engine, queue: str, name: str, version: str) -> bool:
    """Remove a schedule as it was read; False when somebody else has written."""
    return await write(engine, queue, name, Change.of(version, b"", None))


async def _settle(firer: Firer, schedule: Schedule, now: int) -> None:
    wait_us = await firer.settle(schedule, now)
    if wait_us:
        await asyncio.sleep(wait_us / 1e6)


def _busy(name: str) -> StoreUnavailable:
    return StoreUnavailable(f"schedule {name} changed during every try: try again", op="schedule")
