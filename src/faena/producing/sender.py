"""Sends new jobs to the homes of their lanes.

While lanes move, what their old home still knows counts: a job with an id or a unique claim of its
own is asked for there before it is sent to the new one.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from faena.engine import Engine
from faena.engine.calls.transfer import Known, Moving
from faena.engine.envelope import NewJob, facts_in
from faena.engine.scripts import Answer
from faena.errors import HomesChanged, StoreRejected, StoreUnavailable
from faena.options import Durability, DurabilityLevel
from faena.producing.batcher import CallIds, Producer, Sent
from faena.sharding.router import Estate, Homes
from faena.sharding.table import MOVING, Table

_PAUSE_S: Final = 0.1
_PATIENCE_S: Final = 30.0
_REPLACING: Final = frozenset({"debounce", "last"})
"""Claims whose newcomer changes the job that is there, which can only be done where that is."""


class Dispatch:
    """The producers of all homes, and which of them a job is for."""

    def __init__(self, engine: Engine, estate: Estate, calls: CallIds) -> None:
        self._engine = engine
        self._estate = estate
        self._calls = calls
        self._moving = Moving(engine)
        self._producers: dict[tuple[str, Durability], Producer] = {}

    async def send(self, queue: str, jobs: Sequence[NewJob], durability: Durability) -> Sent:
        """Send up to 300 jobs."""
        homes = self._estate.of(queue)
        while True:
            table = homes.known or await homes.table()
            if not table.is_single or table.phase:
                return await self._spread(homes, jobs, durability)
            known = self._producers.get((queue, durability))
            try:
                if known is not None:
                    return await known.send(jobs, table.epoch)
                return await self._send_to(queue, jobs, durability, table.epoch)
            except HomesChanged:
                await homes.refused()

    async def close(self) -> None:
        """Send nothing more."""
        for producer in self._producers.values():
            await producer.close()

    async def _send_to(
        self, home: str, jobs: Sequence[NewJob], durability: Durability, epoch: int
    ) -> Sent:
        producer = self._producers.get((home, durability))
        if producer is None:
            if durability.level is DurabilityLevel.FSYNCED:
                await self._check_fsync(home)
            # Found or made in one step: of two for one home, `close` would know only the last.
            producer = self._producers.setdefault(
                (home, durability), Producer(self._engine, home, self._calls, durability)
            )
        return await producer.send(jobs, epoch)

    async def _check_fsync(self, home: str) -> None:
        """Refuse before anything is written when the server keeps no append-only file."""
        info = await self._engine.info(home, "persistence")
        if b"aof_enabled:1" not in info:
            raise StoreRejected(
                'durability "fsynced" needs a server with appendonly yes; this one has none: '
                "set it with CONFIG SET appendonly yes",
                op="enqueue",
            )

    # -- several homes --------------------------------------------------------------------------

    async def _spread(self, homes: Homes, jobs: Sequence[NewJob], durability: Durability) -> Sent:
        """Send jobs to several homes at once; what a home has refused is routed anew."""
        answers: dict[int, Answer] = {}
        reached = durability
        while left := [at for at in range(len(jobs)) if at not in answers]:
            table = await homes.fresh()
            answers |= await self._ask_former_homes(homes.queue, table, jobs, left)
            groups = _by_home(homes.queue, table, jobs, (at for at in left if at not in answers))
            results = await asyncio.gather(
                *(
                    self._send_to(home, [jobs[at] for at in group], durability, table.epoch)
                    for home, group in groups.items()
                ),
                return_exceptions=True,
            )
            for group, result in zip(groups.values(), results, strict=True):
                if isinstance(result, Sent):
                    answers |= zip(group, result.answers, strict=True)
                    reached = result.durability if reached == durability else reached
            await _look_again(homes, results)
        return Sent([answers[at] for at in range(len(jobs))], reached)

    # -- lanes that move ------------------------------------------------------------------------

    async def _ask_former_homes(
        self, queue: str, table: Table, jobs: Sequence[NewJob], indexes: Iterable[int]
    ) -> dict[int, Answer]:
        """Answers for jobs that an old home knows."""
        if table.phase != MOVING:
            return {}
        former = table.former()
        answers: dict[int, Answer] = {}
        for at in indexes:
            lane = jobs[at].facts.get("lane", "@")
            home, to = former.home_of(queue, lane), table.home_of(queue, lane)
            if home != to and _wanted(jobs[at])[1:] != ("", "", ""):
                known = await self._known_at(home, to, jobs[at])
                if known is not None:
                    answers[at] = _answer(jobs[at], known)
        return answers

    async def _known_at(self, home: str, to: str, job: NewJob) -> Known | None:
        """What the old home knows; a claim to be taken over is waited for until it has moved."""
        job_id, mode, claim, _ = _wanted(job)
        until = time.monotonic() + _PATIENCE_S
        while True:
            (known,) = await self._moving.known(home, to, [(job_id, mode, claim)])
            if known is None or known.spec or mode not in _REPLACING:
                return known
            if time.monotonic() > until:
                raise StoreUnavailable(
                    f"job {known.id} has the claim and does not end where its tenant lived: "
                    "try again later",
                    op="enqueue",
                )
            await asyncio.sleep(_PAUSE_S)


def _wanted(job: NewJob) -> tuple[str, str, str, str]:
    """The id, the mode and hash of the claim, and the digest of a job with an id of its own."""
    facts = job.facts
    return job.id, facts.get("mode", ""), facts.get("unique", ""), facts.get("digest", "")


def _answer(job: NewJob, known: Known) -> Answer:
    digest = job.facts.get("digest")
    is_same = not known.spec or known.spec == job.spec
    is_same = is_same or (digest is not None and digest == facts_in(known.spec).get("digest"))
    return Answer("DUPLICATE" if is_same else "CONFLICT", known.id, known.state)


def _by_home(
    queue: str, table: Table, jobs: Sequence[NewJob], indexes: Iterable[int]
) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = defaultdict(list)
    for at in indexes:
        groups[table.home_of(queue, jobs[at].facts.get("lane", "@"))].append(at)
    return groups


async def _look_again(homes: Homes, results: Iterable[Sent | BaseException]) -> None:
    """Raise what is not a change of homes; otherwise see where they are now."""
    has_changed = False
    for result in results:
        if isinstance(result, HomesChanged):
            has_changed = True
        elif isinstance(result, BaseException):
            raise result
    if has_changed:
        await homes.refused()
