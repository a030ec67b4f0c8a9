"""A schedule as it is shown: how it stands, and when it fires next."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from faena.agenda import Mark, job_id, unpack
from faena.engine.scheduling import Stored
from faena.services.declaring import Declared

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class ScheduleView(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as it stands. Instants are the server's microseconds."""

    name: str
    queue: str
    task: str
    when: str
    """For people: `0 2 * * * Europe/Madrid`, `every 6h`."""
    state: str
    """active, paused or over."""
    next_at: int | None
    last_at: int | None
    """The last instant that was fired."""
    last_job: str | None
    """Its job; `overlap` may have kept it from being made."""
    fired: int
    terms: dict[str, Any]
    """What counts now, as it is stored."""
    edits: dict[str, Mark]
    """Terms that were changed at run time, by whom and when."""
    is_declared: bool
    """Whether this program's code declares it."""
    declared_at: int | None
    """When code declared it last; None when it was created at run time."""
    since: Mark
    paused: Mark | None


def view_of(queue: str, stored: Stored, declared: Mapping[str, Declared]) -> ScheduleView:
    """A schedule as the server has it; `declared` are those of this program's code."""
    record, own = unpack(stored.record), declared.get(stored.name)
    terms = record.terms
    return ScheduleView(
        name=stored.name,
        queue=queue,
        task=terms.task,
        when=terms.describe(),
        state="paused" if record.paused else "over" if stored.due is None else "active",
        next_at=stored.due,
        last_at=record.last,
        last_job=None if record.last is None else job_id(stored.name, record.last),
        fired=record.fired,
        terms=msgspec.to_builtins(terms),
        edits={name: Mark(edit.by, edit.at) for name, edit in record.edits.items()},
        is_declared=own is not None and own.queue == queue,
        declared_at=record.declared_at,
        since=record.since,
        paused=record.paused,
    )


def coming(stored: Stored, number: int) -> list[datetime]:
    """The next instants of a schedule, at most so many."""
    record, due = unpack(stored.record), stored.due
    terms, instants = record.terms, list[datetime]()
    left = number if terms.count is None else min(number, terms.count - record.fired)
    while due is not None and len(instants) < left:
        instants.append(_EPOCH + timedelta(microseconds=due))
        due = terms.following(due)
    return instants
