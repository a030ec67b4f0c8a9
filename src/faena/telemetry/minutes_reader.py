"""Reads the last minutes of many queues at once: a call for each shard, some sent at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from faena.engine import Engine
from faena.engine.calls.statistics import StatisticsCalls, minutes_of_each, retired_of_each
from faena.sharding.router import Routers
from faena.telemetry.statistics import QueueStatistics
from faena.telemetry.statistics_reader import MINUTE_US, Part, added_up

MOST: Final = 60
"""Minutes of one reading."""


async def shards_of_each(
    engine: Engine, routers: Routers, queues: Sequence[str]
) -> dict[str, list[str]]:
    """Queue → its shards, and those that were given up lately."""
    names = await routers.names_of_each(queues)
    gone = await retired_of_each(engine, queues)
    return {
        queue: [*dict.fromkeys([*now, *then])]
        for queue, now, then in zip(queues, names, gone, strict=True)
    }


async def last_minutes(
    engine: Engine, shards: Mapping[str, Sequence[str]], since: int | None = None
) -> tuple[int, dict[str, list[QueueStatistics]]]:
    """The minute that is under way, and each queue's minutes up to it, the oldest first.

    They begin at minute `since`, at most an hour ago; without it, an hour ago.
    """
    if not shards:
        return 0, {}
    every = [shard for names in shards.values() for shard in names]
    if since is None:
        now, _ = await StatisticsCalls(engine).now(every[0])
        since = now // MINUTE_US - MOST + 1
    now, found = await minutes_of_each(engine, every, since, since + MOST - 1)
    last = now // MINUTE_US
    if last >= since + MOST:  # too much is missing: begin anew
        return await last_minutes(engine, shards)
    by_shard = dict(zip(every, found, strict=True))
    minutes: dict[str, list[QueueStatistics]] = {}
    for queue, names in shards.items():
        parts: dict[int, list[Part]] = {at: [] for at in range(since, last + 1)}
        for counted in (one for shard in names for one in by_shard[shard]):
            if counted.at in parts:
                parts[counted.at].append(Part(counted.at * MINUTE_US, counted))
        minutes[queue] = [
            added_up(queue, at * MINUTE_US, min((at + 1) * MINUTE_US, now + 1), some)
            for at, some in parts.items()
        ]
    return last, minutes
