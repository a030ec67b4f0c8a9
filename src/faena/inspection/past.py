"""Jobs that the broker does not have any more, and pages of those and of the broker's together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

from faena.engine import Engine
from faena.engine.calls.deadletter import Position
from faena.engine.envelope import spec_in
from faena.inspection.reason import Reason
from faena.job import JobView
from faena.sharding.consistent_read import Sight, is_behind, travelling
from faena.states import State

Source: TypeAlias = Literal["both", "broker", "history"]
Which: TypeAlias = tuple[str, str | None]
"""Id and tenant of a job: two tenants may have given the same id."""


class PastReader(Protocol):
    """Reads ended jobs from somewhere else; a job is there once, as it ended last."""

    def covers(self, queue: str) -> bool:
        """Whether it has jobs of a queue."""
        ...

    async def job(self, queue: str, job_id: str, lane: str | None) -> JobView | None:
        """One job, of that lane unless it is None."""
        ...

    async def page(
        self, queue: str, state: State, limit: int, after: Position, *, is_newest_first: bool
    ) -> list[JobView]:
        """Jobs that ended in a state, by instant and id, behind a position."""
        ...


class RowReader(Protocol):
    """Reads jobs that a database has not sent to the broker yet."""

    async def row(self, queue: str, job_id: str) -> Reason | None:
        """Why a job is still there; None if it is not."""
        ...


@dataclass(slots=True)
class PastJobs:
    """The readers of an app, if it has some; they may be set after the app has connected."""

    reader: PastReader | None = None
    rows: RowReader | None = None

    def of(self, queue: str) -> PastReader | None:
        """The reader, if it has jobs of a queue."""
        return self.reader if self.reader is not None and self.reader.covers(queue) else None


class Wanted(NamedTuple):
    """A page that is asked for."""

    queue: str
    state: State
    limit: int
    after: Position
    is_newest_first: bool


async def known_of(engine: Engine, sight: Sight, ids: Sequence[str]) -> set[Which]:
    """Those of some jobs that the broker has, in whatever state."""
    known: set[Which] = set()
    for shard in sight.shards if ids else ():
        looks = [*zip(ids, await engine.look(shard, ids), strict=True)]
        if sight.is_moving:
            moving = await travelling(engine, shard, ids)
            looks += [(one.position.id, one.look) for one in moving]
        for job, look in looks:
            if look:
                spec = spec_in(look.spec)
                known.add((job, spec.tenant if spec else None))
    return known


def merged(
    wanted: Wanted,
    places: Sequence[Position],
    live: Sequence[JobView],
    gone: Sequence[JobView],
    known: Collection[Which],
) -> tuple[tuple[JobView, ...], Position | None]:
    """The jobs of a page out of those of both, and where it ends; None at the end of all.

    `places` are those of the broker that were looked at. A place counts also if its job is not
    shown: else a page of jobs that are shown elsewhere would have no end.
    """
    is_reverse = wanted.is_newest_first
    all_places = sorted([*places, *map(_place, gone)], key=Position.key, reverse=is_reverse)
    last = all_places[wanted.limit - 1] if len(all_places) >= wanted.limit else None
    jobs = {_which(one): one for one in gone if _which(one) not in known}
    jobs |= {_which(one): one for one in live}
    shown = sorted(jobs.values(), key=lambda one: _place(one).key(), reverse=is_reverse)
    if last is None:
        return tuple(shown), None
    return tuple(
        one for one in shown if not is_behind(_place(one), last, is_reverse=is_reverse)
    ), last


def _which(job: JobView) -> Which:
    return job.id, job.tenant


def _place(job: JobView) -> Position:
    return Position(str(job.finished_at or 0), job.id)
