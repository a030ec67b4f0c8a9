"""How a shard is at one instant, in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from faena.engine.calls.together import ask_each, take_in_each
from faena.engine.engine import Engine
from faena.engine.overview import Hold, WorkerView, read_holds, read_workers
from faena.engine.scripts import pairs


class ShardFacts(NamedTuple):
    """What the script `snapshot` tells."""

    now: int
    counts: Mapping[str, int]
    holds: tuple[Hold, ...]
    workers: tuple[WorkerView, ...]
    totals: Mapping[str, int]
    ready_since: int | None
    """Since when the job that comes first is ready; None if none is."""
    dead_since: int | None
    """When the dead job died that nobody has dealt with for longest; None if there is none."""
    is_open: bool
    """Whether a worker with room would be given a ready job; not while the queue, or each tenant
    that has one, is at a bound or held."""


async def read_shard(engine: Engine, shard: str) -> ShardFacts:
    """One call, after one that stores the jobs in `arrivals`."""
    (found,) = await read_shards(engine, [shard])
    return found


async def read_shards(engine: Engine, shards: Sequence[str]) -> list[ShardFacts]:
    """One call of each, after one that stores the jobs in `arrivals`; sent some at a time."""
    await take_in_each(engine, shards)
    return [_facts(reply) for reply in await ask_each(engine, "snapshot", shards)]


def _facts(reply: Sequence[Any]) -> ShardFacts:
    now, counts, holds, workers, about, totals, since, dead_since, is_open = reply
    return ShardFacts(
        now=now,
        counts=pairs(counts),
        holds=read_holds(holds, now),
        workers=read_workers(workers, about),
        totals={name: int(number) for name, number in pairs(totals).items()},
        ready_since=int(since) if since else None,
        dead_since=int(float(dead_since)) if dead_since else None,
        is_open=bool(is_open),
    )
