"""Pages of dead jobs over any number of shards, in one order of death, and their cursors.

All shards are read in parallel. A cursor is a position in this order, bound to the filter and the
direction of its page. Shards and jobs may come and go between two pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from faena.engine.calls.deadletter import DeskCalls, Filter, Found, Position, Slice, read_record
from faena.sharding.consistent_read import is_behind, travelling
from faena.values.cursor import read_cursor, write_cursor

_LOOKS: Final = 25
"""The most calls for one page: a filter with few matches must not read everything."""


_MANY: Final = 4
"""From so many shards on, the first slices are read together."""
_FIRST: Final = 10


class Wanted(NamedTuple):
    """The filter and the direction of a page."""

    queues: tuple[str, ...]
    filter: Filter
    ages: tuple[int | None, int | None]
    """Older than and newer than, as requested; the filter has them as instants."""
    is_newest_first: bool

    def about(self) -> object:
        """The part that cursors are bound to."""
        return self.queues, tuple(self.filter[:5]), self.ages, self.is_newest_first


class Walker:
    """Reads one shard slice by slice."""

    def __init__(
        self, calls: DeskCalls, queue: str, shard: str, wanted: Wanted, *, is_moving: bool = False
    ) -> None:
        self._calls = calls
        self._wanted = wanted
        self.queue = queue
        self.shard = shard
        self.is_moving = is_moving
        self._found: list[Met] = []
        self._is_over = False
        self._reached = Position()

    def start(self, after: Position) -> None:
        """Start after a position."""
        self._reached, self._is_over, self._found = after, False, []

    @property
    def is_over(self) -> bool:
        """Whether nothing is left here."""
        return self._is_over and not self._found

    @property
    def must_read(self) -> bool:
        """Whether the next slice must be read."""
        return not self._found and not self._is_over

    @property
    def front(self) -> Position:
        """The position before which nothing is left."""
        return self._found[0].position if self._found else self._reached

    async def look(self, limit: int) -> None:
        """Read the next slice; while tenants move, also the jobs in transit from here."""
        after, is_reverse = self._reached, self._wanted.is_newest_first
        part = await self._calls.page(
            self.shard, self._wanted.filter, after=after, is_reverse=is_reverse, limit=limit
        )
        self.accept(part)
        if self.is_moving:
            self._found += await self._on_the_way(after)
            self._found.sort(key=lambda one: one.position.key(), reverse=is_reverse)

    async def read_each(self, shards: Sequence[str], after: Position, limit: int) -> list[Slice]:
        """The slices of many shards after one position."""
        is_reverse = self._wanted.is_newest_first
        return await self._calls.page_of_each(
            shards, self._wanted.filter, after=after, is_reverse=is_reverse, limit=limit
        )

    def accept(self, part: Slice) -> None:
        """What was read."""
        self._reached, self._is_over = part.reached, part.is_over
        self._found = [Met(one, self) for one in part.found]

    async def _on_the_way(self, after: Position) -> list[Met]:
        """Dead jobs in transit from this shard, in the range of the slice that was just read."""
        jobs = [one for one in await travelling(self._calls.engine, self.shard) if one.record]
        found = [Found(one.position, read_record(one.record)) for one in jobs]
        return [
            Met(one, self, is_travelling=True)
            for one in found
            if _fits(self._wanted.filter, one) and self._is_in_slice(one.position, after)
        ]

    def _is_in_slice(self, position: Position, after: Position) -> bool:
        is_reverse = self._wanted.is_newest_first
        return is_behind(position, after, is_reverse=is_reverse) and (
            self._is_over or not is_behind(position, self._reached, is_reverse=is_reverse)
        )

    def take(self) -> Met:
        """Take the next job."""
        return self._found.pop(0)


class Met(NamedTuple):
    """A dead job, and the walker that read it."""

    found: Found
    walker: Walker
    is_travelling: bool = False

    @property
    def position(self) -> Position:
        """Its position in the order of death."""
        return self.found.position


def _fits(wanted: Filter, found: Found) -> bool:
    """Whether a filter matches a job, with the same rule as the script."""
    record, at = found.record, float(found.position.score)
    asked = [
        (wanted.status, (record.s,)),
        (wanted.task, (record.t,)),
        (wanted.tenant, (record.o,)),
        (wanted.error, (record.e, record.c)),
        (wanted.fingerprint, (record.f,)),
    ]
    return (
        all(not word or word in words for word, words in asked)
        and (wanted.died_from is None or at >= wanted.died_from)
        and (wanted.died_to is None or at <= wanted.died_to)
    )


class Gathered(NamedTuple):
    """The jobs of a page, and where the next page begins."""

    met: list[Met]
    reached: Position | None
    """None if nothing is left."""


async def gather(
    walkers: Sequence[Walker], after: Position, limit: int, *, is_newest_first: bool
) -> Gathered:
    """The next jobs of all shards, including all at the position of the last one.

    Another queue may have a job with the same position and id.
    """
    for walker in walkers:
        walker.start(after)
    met: list[Met] = []
    looks = max(_LOOKS, 2 * len(walkers)) - await _read_first(walkers, after, limit)
    while left := [walker for walker in walkers if not walker.is_over]:
        first = _first(left, is_newest_first=is_newest_first)
        if first.must_read and looks <= 0:
            return Gathered(met, first.front)
        if first.must_read:
            looks -= await _read_next(first, walkers, limit)
        elif len(met) >= limit and first.front.key() != met[-1].position.key():
            return Gathered(met, met[-1].position)
        else:
            met.append(first.take())
    return Gathered(met, None)


async def _read_first(walkers: Sequence[Walker], after: Position, limit: int) -> int:
    """Read a short slice of every shard, some at a time; returns the number of calls.

    The next jobs of all shards together are few of each. Moving ones are read in order, later.
    """
    still = [one for one in walkers if not one.is_moving]
    if len(still) < _MANY:
        return 0
    least = min(limit, max(_FIRST, 2 * limit // len(still)))
    parts = await still[0].read_each([one.shard for one in still], after, least)
    for walker, part in zip(still, parts, strict=True):
        walker.accept(part)
    return len(still)


async def _read_next(first: Walker, walkers: Sequence[Walker], limit: int) -> int:
    """Read the next slice; returns the number of calls.

    While tenants move, all shards are read from one position, in order: see
    `faena.sharding.consistent_read`.
    """
    after = first.front
    some = [one for one in walkers if one.queue == first.queue] if first.is_moving else [first]
    for walker in some:
        walker.start(after)
        await walker.look(limit)
    return len(some)


def _first(walkers: Sequence[Walker], *, is_newest_first: bool) -> Walker:
    """The walker with the next job.

    A walker that has read nothing yet comes first, so that it is read. At the same position, one
    with a job comes before one that has only reached it.
    """
    fresh = [walker for walker in walkers if not walker.front.id]
    if fresh:
        return fresh[0]
    if is_newest_first:
        return max(walkers, key=lambda one: (one.front.key(), not one.must_read))
    return min(walkers, key=lambda one: (one.front.key(), one.must_read))


# -- cursors ------------------------------------------------------------------------------------


def cursor_at(wanted: Wanted, reached: Position) -> str:
    """A cursor that continues after a position."""
    bounds = wanted.filter.died_from, wanted.filter.died_to
    return write_cursor(wanted.about(), *reached, bounds)


def continued(cursor: Any, wanted: Wanted) -> tuple[Wanted, Position]:
    """The page that continues at a cursor, with ages counted from the time of the first page."""
    what = "a page of the same filter and direction"
    read = read_cursor(cursor, wanted.about(), what)
    died_from, died_to = read.bounds
    bounds = wanted.filter._replace(died_from=died_from, died_to=died_to)
    return wanted._replace(filter=bounds), Position(read.score, read.id)
