"""What a provider said to a job is told to the other shards of the queue, every time anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from faena.engine import Engine
from faena.engine.scripts import Claim
from faena.errors import StoreUnavailable
from faena.outcomes import Limited
from faena.sharding.table import Shard
from faena.worker.fetch.hold_broadcast import HoldBroadcast

CLAIM = Claim("job", "lease", None, 0.0, 0, 0, 0)
HOUR, MINUTE = 3_600_000_000, 60_000_000


class Told:
    """Two shards that note how long they were told to wait."""

    def __init__(self) -> None:
        self.told: list[tuple[str, float]] = []
        self.is_down = False
        broadcast = HoldBroadcast(cast("Engine", self), {"q": self.look})
        self._heard = broadcast.listening("q", lambda *_: None)
        self._finish = broadcast.finish

    async def look(self) -> Sequence[Shard]:
        if self.is_down:
            raise StoreUnavailable("no server", op="shards")
        return [Shard("q", "q"), Shard("q/1", "q")]

    async def ask(self, _script: str, shard: str, **named: Any) -> None:
        self.told.append((shard, named["duration"]))

    async def hear(self, *delays_us: int) -> list[tuple[str, float]]:
        """Let jobs end while no round is under way; what the shards are told in minutes."""
        self.told.clear()
        for delay_us in delays_us:
            self._heard(CLAIM, Limited(delay_us), None)
        await self._finish(5)
        return [(shard, round(left_us / MINUTE)) for shard, left_us in self.told]


@pytest.fixture
def shards() -> Told:
    return Told()


async def test_a_shorter_hold_is_told_after_a_longer_one(shards: Told) -> None:
    assert await shards.hear(HOUR) == [("q", 60), ("q/1", 60)]
    assert await shards.hear(10 * MINUTE) == [("q", 10), ("q/1", 10)]


async def test_the_longest_hold_heard_at_once_is_told_once(shards: Told) -> None:
    assert await shards.hear(MINUTE, HOUR, 10 * MINUTE) == [("q", 60), ("q/1", 60)]


async def test_a_hold_is_told_after_a_round_that_failed(shards: Told) -> None:
    shards.is_down = True
    assert await shards.hear(HOUR) == []
    shards.is_down = False
    assert await shards.hear(10 * MINUTE) == [("q", 10), ("q/1", 10)]
