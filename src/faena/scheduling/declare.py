"""Changes the records of schedules with optimistic locking.

A change is computed from the record that was read, and written only if the record has not changed
meanwhile. Otherwise it is computed again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from faena.engine import Engine
from faena.engine.calls.scheduling import Change, read, write
from faena.errors import Overloaded, StoreUnavailable
from faena.scheduling.due import Mark, Record, Schedule, unpack
from faena.scheduling.fire import Firer

CODE: Final = "code"
_TRIES: Final = 100
_SAID_US: Final = 60_000_000
"""The pause between two records that code still declares a schedule."""


_log = logging.getLogger("faena.scheduler")


class Declared(NamedTuple):
    """A schedule as code declares it."""

    name: str
    queue: str
    base: Mapping[str, Any]

    def record(self, now: int) -> Record:
        """The record for the first declaration."""
        return Record(base=dict(self.base), since=Mark(CODE, now), declared_at=now)

    def unwritten(self, now: int) -> Schedule:
        """The schedule as if a worker declared it now."""
        record = self.record(now)
        return Schedule(self.name, "", record, record.first_due(now))


class Kept(NamedTuple):
    """A schedule as read; `record` is None if there is none."""

    record: Record | None
    due: int | None
    now: int
    is_here: bool = True
    """False if it was taken over from another queue."""


class Start(NamedTuple):
    """How a schedule starts that is declared for the first time."""

    since: int | None = None
    """The instant from which it can be due; None: now."""
    elsewhere: Sequence[str] = ()
    """The program's other queues; the schedule may have moved from one of them."""


_NOW: Final = Start()

Edited = tuple[Record, int | None] | None
"""A record and its due instant; None: no change."""


async def declare(
    firer: Firer, engine: Engine, declared: Declared, start: Start = _NOW, *, waits: bool = True
) -> None:
    """Update a schedule to the options in code, except edited ones; a due instant is kept.

    A job of it that another shard has yet to take in must be there before; as in `change`.
    """
    _, found = await read(engine, firer.queue, [declared.name])
    taken = None if found else await _take_over(engine, declared.name, start.elsewhere)

    def declared_now(kept: Kept) -> Edited:
        return _declared(taken if kept.record is None and taken else kept, declared, start)

    record, due = await change(firer, engine, declared.name, declared_now, waits=waits)
    if record is not None and due is None and record.paused is None and not record.fired:
        when = record.terms.describe()
        _log.warning("schedule %s will never fire: no instant is left, %s", declared.name, when)


async def _take_over(engine: Engine, name: str, queues: Sequence[str]) -> Kept | None:
    """Remove a schedule from the queue on which code declared it before.

    It is removed there before it is added here: it may be in no queue for a moment, never in two.
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
    """When a changed schedule is due: as before, unless its timing has changed.

    An overdue instant still counts if the new options include it.
    """
    before = kept.record
    if before is not None and before.terms.timing == after.terms.timing:
        return after, kept.due
    since = kept.now if kept.due is None else min(kept.now, kept.due - 1)
    return after, after.first_due(since)


async def change(
    firer: Firer,
    engine: Engine,
    name: str,
    edit: Callable[[Kept], Edited],
    *,
    waits: bool = True,
) -> tuple[Record | None, int | None]:
    """Apply `edit` to a schedule and write it; returns the new record and its due instant.

    A job of it that is on its way to another shard is sent first. If that shard is full, wait for
    it, or raise Overloaded if this call `waits` for nothing.
    """
    for _ in range(_TRIES):
        now, found = await read(engine, firer.queue, [name])
        schedule = Schedule.of(found[name]) if found else None
        if schedule is not None and schedule.record.intent is not None:
            await _settle(firer, schedule, now, waits=waits)
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
    """Remove a schedule; False if there is none."""
    for _ in range(_TRIES):
        _, found = await read(engine, queue, [name])
        if name not in found:
            return False
        if await give_up(engine, queue, name, found[name].version):
            return True
    raise _busy(name)


async def give_up(engine: Engine, queue: str, name: str, version: str) -> bool:
    """Remove a schedule if it is unchanged since it was read; else False."""
    return await write(engine, queue, name, Change.of(version, b"", None))


async def _settle(firer: Firer, schedule: Schedule, now: int, *, waits: bool) -> None:
    wait_s = await firer.settle(schedule, now) / 1e6
    if wait_s and not waits:
        words = f"schedule {schedule.name} cannot change before a full shard takes in its last job"
        raise Overloaded(words, retry_after=wait_s, reason="backpressure")
    await asyncio.sleep(wait_s)


def _busy(name: str) -> StoreUnavailable:
    return StoreUnavailable(f"schedule {name} changed during every try: try again", op="schedule")
