"""Sends new jobs to the shards of their lanes.

While lanes move, a job with a given id or a unique key is looked up in the old shard before it is
sent to the new one.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from faena.engine import Engine
from faena.engine.calls.transfer import Known, TransferCalls
from faena.engine.envelope import NewJob, facts_in
from faena.engine.scripts import Answer
from faena.errors import ShardsChanged, StoreRejected, StoreUnavailable
from faena.options import Durability, DurabilityLevel
from faena.producing.batcher import Batcher, CallIds, Sent
from faena.producing.known_sends import KnownSends, may_have_moved
from faena.sharding.router import Router, Routers
from faena.sharding.routing_table import MOVING, Table

_PAUSE_S: Final = 0.1
_PATIENCE_S: Final = 30.0
_REPLACING: Final = frozenset({"debounce", "last"})
"""Modes in which a new job changes the existing one, which must happen in the same shard."""


class Sender:
    """The batchers of all shards; chooses the shard of each job."""

    def __init__(self, engine: Engine, routers: Routers) -> None:
        self._engine = engine
        self._routers = routers
        self._calls = CallIds()
        self._transfer = TransferCalls(engine)
        self._sends = KnownSends(engine)
        self._batchers: dict[tuple[str, Durability], Batcher] = {}

    async def enqueue(self, queue: str, jobs: Sequence[NewJob], durability: Durability) -> Sent:
        """Send up to 300 jobs."""
        router = self._routers.of(queue)
        table = router.route or await router.grown()
        is_simple = table.is_single and not table.phase
        if is_simple and not may_have_moved(table, jobs[0]):  # the common case needs no routing
            known = self._batchers.get((queue, durability))
            try:
                if known is not None:
                    return await known.send(jobs, table.epoch)
                return await self._send_to(queue, jobs, durability, table.epoch)
            except ShardsChanged:
                await router.refused()
        return await self._spread(router, jobs, durability)

    async def close(self) -> None:
        """Send no more jobs; call it before the connection is closed."""
        for batcher in self._batchers.values():
            await batcher.close()

    async def _send_to(
        self, shard: str, jobs: Sequence[NewJob], durability: Durability, epoch: int
    ) -> Sent:
        batcher = self._batchers.get((shard, durability))
        if batcher is None:
            if durability.level is DurabilityLevel.FSYNCED:
                await self._check_fsync(shard)
            # Another task may have created it meanwhile, and `close` must know every batcher.
            batcher = self._batchers.setdefault(
                (shard, durability), Batcher(self._engine, shard, self._calls, durability)
            )
        return await batcher.send(jobs, epoch)

    async def _check_fsync(self, shard: str) -> None:
        """Refuse, before anything is written, if the server has no append-only file."""
        info = await self._engine.info(shard, "persistence")
        if b"aof_enabled:1" not in info:
            raise StoreRejected(
                'durability "fsynced" needs a server with appendonly yes; this one has appendonly '
                "no: run CONFIG SET appendonly yes",
                op="enqueue",
            )

    # -- several shards --------------------------------------------------------------------------

    async def _spread(self, router: Router, jobs: Sequence[NewJob], durability: Durability) -> Sent:
        """Send jobs to several shards in parallel; jobs that a shard refuses are routed again."""
        queue, answers, reached = router.queue, dict[int, Answer](), durability

        async def send_rest(table: Table) -> None:
            nonlocal reached
            left = [at for at in range(len(jobs)) if at not in answers]
            answers.update(await self._ask_former_shards(queue, table, jobs, left))
            # Later: one that runs there until now is known as a job, then as one that has ended.
            answers.update(await self._sends.answers(queue, table, jobs, left))
            groups = _by_shard(queue, table, jobs, (at for at in left if at not in answers))
            results = await asyncio.gather(
                *(
                    self._send_to(shard, [jobs[at] for at in group], durability, table.epoch)
                    for shard, group in groups.items()
                ),
                return_exceptions=True,
            )
            for group, result in zip(groups.values(), results, strict=True):
                if isinstance(result, Sent):
                    answers.update(zip(group, result.answers, strict=True))
                    reached = result.durability if reached == durability else reached
            _raise_first(results)

        await router.on_current_shards(send_rest)
        return Sent([answers[at] for at in range(len(jobs))], reached)

    # -- lanes that move ------------------------------------------------------------------------

    async def _ask_former_shards(
        self, queue: str, table: Table, jobs: Sequence[NewJob], indexes: Iterable[int]
    ) -> dict[int, Answer]:
        """Answers for jobs that already exist in an old shard."""
        if table.phase != MOVING:
            return {}
        former = table.former()
        answers: dict[int, Answer] = {}
        for at in indexes:
            lane = jobs[at].facts.get("lane", "@")
            shard, to = former.shard_of(queue, lane), table.shard_of(queue, lane)
            if shard != to and _wanted(jobs[at])[1:] != ("", "", ""):
                known = await self._known_at(shard, to, jobs[at])
                if known is not None:
                    answers[at] = _answer(jobs[at], known)
        return answers

    async def _known_at(self, shard: str, to: str, job: NewJob) -> Known | None:
        """The existing job in the old shard; if it must be changed, wait until it has moved."""
        job_id, mode, claim, _ = _wanted(job)
        until = time.monotonic() + _PATIENCE_S
        while True:
            (known,) = await self._transfer.known(shard, to, [(job_id, mode, claim)])
            if known is None or known.spec or mode not in _REPLACING:
                return known
            if time.monotonic() > until:
                raise StoreUnavailable(
                    f"job {known.id} holds the unique key in the tenant's previous shard and has "
                    "not ended: try again later",
                    op="enqueue",
                )
            await asyncio.sleep(_PAUSE_S)


def _wanted(job: NewJob) -> tuple[str, str, str, str]:
    """Id, mode and hash of the unique key, and digest, of a job with a given id."""
    facts = job.facts
    return job.id, facts.get("mode", ""), facts.get("unique", ""), facts.get("digest", "")


def _answer(job: NewJob, known: Known) -> Answer:
    digest = job.facts.get("digest")
    is_same = not known.spec or known.spec == job.spec
    is_same = is_same or (digest is not None and digest == facts_in(known.spec).get("digest"))
    return Answer("DUPLICATE" if is_same else "CONFLICT", known.id, known.state)


def _by_shard(
    queue: str, table: Table, jobs: Sequence[NewJob], indexes: Iterable[int]
) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = defaultdict(list)
    for at in indexes:
        groups[table.shard_of(queue, jobs[at].facts.get("lane", "@"))].append(at)
    return groups


def _raise_first(results: Iterable[Sent | BaseException]) -> None:
    """Raise the first error; ShardsChanged only if there is no other."""
    errors = [result for result in results if isinstance(result, BaseException)]
    for error in sorted(errors, key=lambda one: isinstance(one, ShardsChanged)):
        raise error
