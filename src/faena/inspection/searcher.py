"""Looks for jobs in all queues, a bounded time at once, and goes on where it has stopped.

Live jobs come first, then those that died or were cancelled, then those that completed: in each
state of each shard the newest first. A job that changes its state meanwhile may be found twice or
not at all, as may one whose tenant moves to another shard.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from faena.engine import Engine
from faena.engine.calls.search import Looked, Met, Spot, search
from faena.inspection.job_query import JobQuery
from faena.inspection.job_view import read_job
from faena.job import JobView
from faena.sharding.consistent_read import in_sight
from faena.sharding.router import Routers
from faena.states import State

ROUNDS: Final = (
    (State.RUNNING, State.READY, State.BLOCKED, State.DELAYED),
    (State.DEAD, State.CANCELLED),
    (State.COMPLETED,),
)
_AT_ONCE: Final = 50
"""Jobs that one call looks at in full."""


class Place(msgspec.Struct, frozen=True, array_like=True):
    """How far a search has come; the start is before the first queue."""

    round: int = 0
    queue: str = ""
    shard: str = ""
    spot: Spot = Spot()
    looked: int = 0
    """Jobs looked at so far."""


class Hit(NamedTuple):
    """A job that fits, and where it was."""

    shard: str
    score: str
    job: JobView


class Findings(NamedTuple):
    """What a part of a search has found."""

    hits: Sequence[Hit]
    place: Place | None
    """Where it goes on; None at the end."""
    looked: int
    """Jobs looked at since the search began."""


class Searcher:
    """Looks for jobs of some queues."""

    def __init__(self, engine: Engine, routers: Routers, queues: Iterable[str]) -> None:
        self._engine = engine
        self._routers = routers
        self._queues = sorted(queues)

    async def find(
        self,
        query: JobQuery,
        place: Place,
        *,
        limit: int,
        budget_s: float,
        among: frozenset[State] = frozenset(State),
    ) -> Findings:
        """The next jobs that fit: at most so many, after about so long at the latest.

        At least one call is made, so that a search comes to its end however little time it has.
        """
        if any("*" not in one for one in query.values("id")):
            return await self._named(query, place, among)
        until = time.monotonic() + budget_s
        hits: list[Hit] = []
        while True:
            here = await self._settled(query, place, among)
            if here is None:
                return Findings(hits, None, place.looked)
            found, place = await self._step(query, here, limit - len(hits), among)
            hits += found
            if len(hits) >= limit or time.monotonic() >= until:
                end = await self._settled(query, place, among)
                return Findings(hits, end, place.looked)

    async def by_id(self, query: JobQuery, job: str) -> Sequence[Hit]:
        """The jobs of that id that fit: one in each shard at most."""
        hits: list[Hit] = []
        for queue in filter(query.asks_for, self._queues):
            for shard in await self._shards(queue):
                met = [Met(job, "", "")]
                hits += await self._read(query, queue, shard, met, frozenset(State))
        return hits

    async def _named(self, query: JobQuery, place: Place, among: frozenset[State]) -> Findings:
        (job, *_) = [one for one in query.values("id") if "*" not in one]
        hits = await self.by_id(query, job)
        wanted = [one for one in hits if one.job.state in among]
        return Findings(wanted, None, place.looked + len(hits))

    async def _settled(
        self, query: JobQuery, place: Place, among: frozenset[State]
    ) -> Place | None:
        """The place, or the first one behind it where something may be; None at the end."""
        queues = [one for one in self._queues if query.asks_for(one)]
        if place.shard and place.queue in queues:
            return place
        for number in range(place.round, len(ROUNDS)):
            later = (one for one in queues if number > place.round or one > place.queue)
            queue = next(later, None)
            if queue is not None and query.states(among) & {*ROUNDS[number]}:
                (first, *_) = await self._shards(queue)
                return Place(number, queue, first, looked=place.looked)
        return None

    async def _step(
        self, query: JobQuery, place: Place, limit: int, among: frozenset[State]
    ) -> tuple[list[Hit], Place]:
        """One call, and the jobs it has met."""
        states = [one for one in ROUNDS[place.round] if one in query.states(among)]
        sieve, wanted = query.sieve(place.queue), min(limit, _AT_ONCE)
        found = await search(self._engine, place.shard, states, sieve, place.spot, wanted)
        hits = await self._read(query, place.queue, place.shard, found.met, among)
        return hits, await self._behind(place, found)

    async def _behind(self, place: Place, found: Looked) -> Place:
        """Where to go on: in the same shard, in the next one, or behind the queue."""
        looked = place.looked + found.number
        if found.spot is not None:
            return msgspec.structs.replace(place, spot=found.spot, looked=looked)
        shards = await self._shards(place.queue)
        at = shards.index(place.shard) + 1 if place.shard in shards else 0
        following = shards[at] if at < len(shards) else ""
        return Place(place.round, place.queue, following, looked=looked)

    async def _read(
        self,
        query: JobQuery,
        queue: str,
        shard: str,
        met: Sequence[Met],
        among: frozenset[State],
    ) -> list[Hit]:
        """The jobs that do fit, as they are now."""
        if not met:
            return []
        looks = await self._engine.look(shard, [one.id for one in met])
        found = zip(met, looks, strict=True)
        views = [(look.score, read_job(queue, one.id, look)) for one, look in found if look]
        return [
            Hit(shard, score, job) for score, job in views if job.state in among and query.fits(job)
        ]

    async def _shards(self, queue: str) -> Sequence[str]:
        return (await in_sight(self._routers.of(queue))).shards
