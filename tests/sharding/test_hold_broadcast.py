"""What a provider said to a job is told to the other shards of the queue, every time anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from faena.engine import Engine
from faena.engine.scripts import Claim
from faena.errors import StoreUnavailable
from faena.outcomes import Limited, Scope
from faena.sharding.routing_table import Shard
from faena.worker.fetch.hold_broadcast import HoldBroadcast

CLAIM = Claim("job", "lease", None, 0.0, 0, 0, 0)
HOUR, MINUTE = 3_600_000_000, 60_000_000


class Told:
    """Two shards that note how long they were told to wait."""

    def __init__(self) -> None:
        self.told: list[tuple[str, float]] = []
        self.is_down = False
        self.names = ["q", "q/1"]
        self.heard_in_a_round: list[int] = []
        broadcast = HoldBroadcast(cast("Engine", self), {"q": self.look})
        self._heard = broadcast.listening("q", lambda *_: None)
        self._finish = broadcast.finish

    async def look(self) -> Sequence[Shard]:
        if self.is_down:
            raise StoreUnavailable("no server", op="shards")
        while self.heard_in_a_round:
            self._heard(CLAIM, Limited(self.heard_in_a_round.pop()), None)
        return [Shard(name, "q") for name in self.names]

    async def ask(self, _script: str, shard: str, **named: Any) -> None:
        self.told.append((shard, named["duration"]))

    async def hear(self, *delays_us: int, scope: Scope = "queue") -> list[tuple[str, float]]:
        """Let jobs end while no round is under way; what the shards are told in minutes."""
        self.told.clear()
        for delay_us in delays_us:
            self._heard(CLAIM, Limited(delay_us, scope=scope), None)
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


async def test_a_longer_hold_that_is_heard_during_a_round_makes_one_more(shards: Told) -> None:
    shards.heard_in_a_round = [HOUR]
    told = await shards.hear(MINUTE)
    assert told == [("q", 1), ("q/1", 1), ("q", 60), ("q/1", 60)]


async def test_what_is_said_of_a_tenant_is_not_told_to_other_shards(shards: Told) -> None:
    assert await shards.hear(HOUR, scope="tenant") == []


async def test_the_only_shard_of_a_queue_knows_by_itself(shards: Told) -> None:
    shards.names = ["q"]
    assert await shards.hear(HOUR) == []
