"""What tests of the history read of it."""

from __future__ import annotations

from faena.engine.calls.history import Finishing, HistoryCalls

ROOM = 1_000_000


async def told(calls: HistoryCalls, shard: str = "q") -> list[Finishing]:
    """All ends of jobs in a shard, oldest first."""
    return [one for entry in await calls.read(shard) for one in entry.finishings]


async def ends(calls: HistoryCalls, shard: str = "q") -> list[tuple[str, str]]:
    """Ids and states of the same."""
    return [(one.id, one.state) for one in await told(calls, shard)]
