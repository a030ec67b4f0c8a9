"""Jobs of an outbox that have come and gone in another shard before their lane moved.

The relay of an outbox sends a job again, under the same id, when nobody has noted that it was sent.
A shard knows for a minute which of them have ended there (`sent:`), but the tenant may have moved
since, and its new shard knows nothing of that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from faena.engine import Engine
from faena.engine.calls.flows import FlowCalls
from faena.engine.calls.transfer import TransferCalls
from faena.engine.envelope import NewJob
from faena.engine.scripts import Answer
from faena.sharding.routing_table import MOVING, Table
from faena.values.shards import own_shard, shard_index

_KNOWN_US: Final = 120_000_000
"""Longer than shards know of sends that have ended. What ended before is settled in the database
before a job is sent."""


def may_have_moved(table: Table, job: NewJob) -> bool:
    """Whether a job is of an outbox, and may have ended in another shard than its lane's."""
    if not job.facts.get("tells", "").startswith("o:"):
        return False
    return table.phase == MOVING or job.facts.get("by", 0) < table.moved_at_us + _KNOWN_US


class KnownSends:
    """Looks for them in all shards where their lanes may have been."""

    def __init__(self, engine: Engine) -> None:
        self._flows = FlowCalls(engine)
        self._transfer = TransferCalls(engine)

    async def answers(
        self, queue: str, table: Table, jobs: Sequence[NewJob], indexes: Iterable[int]
    ) -> dict[int, Answer]:
        """For those that have ended elsewhere, what their shards would say."""
        asked = [at for at in indexes if may_have_moved(table, jobs[at])]
        answers: dict[int, Answer] = {}
        for shard, some in (await self._places(queue, table, jobs, asked)).items():
            found = await self._flows.known_sends(shard, [jobs[at].id for at in some])
            for at, record in zip(some, found, strict=True):
                if record == f"digest={jobs[at].facts.get('digest')}":
                    answers[at] = Answer("DUPLICATE", jobs[at].id, "removed")
        return answers

    async def _places(
        self, queue: str, table: Table, jobs: Sequence[NewJob], asked: Sequence[int]
    ) -> dict[str, list[int]]:
        """Shards that lanes share, and each lane's own, but the one where it is now."""
        if not asked:
            return {}
        shared = {shard.name for one in (table, table.former()) for shard in one.shared(queue)}
        retired = await self._transfer.retired(queue)
        shared |= {name for name in retired if shard_index(name) is not None}
        places: dict[str, list[int]] = defaultdict(list)
        for at in asked:
            lane = jobs[at].facts.get("lane", "@")
            for shard in {*shared, own_shard(queue, lane)} - {table.shard_of(queue, lane)}:
                places[shard].append(at)
        return places
