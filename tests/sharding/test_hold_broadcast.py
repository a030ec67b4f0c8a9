"""What a provider said to a job is told to the other shards of the queue, every time anew."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from faena import Faena
from faena.engine.scripts import Claim
from faena.outcomes import Limited, Scope
from faena.sharding.routing_table import Shard
from faena.worker.fetch.hold_broadcast import HoldBroadcast
from tests._support.eventually import PATIENCE_S
from tests._support.failing_script import make_fail

CLAIM = Claim("job", "lease", None, 0.0, 0, 0, 0)
HOUR, MINUTE = 3_600_000_000, 60_000_000


class Shards:
    """The shards of a queue, and the jobs of the first one that a provider limits."""

    def __init__(self, app: Faena) -> None:
        self._app = app
        self.rounds = 0
        self.heard_in_a_round: list[int] = []

    async def start(self, number: int) -> None:
        """Have the queue grow to so many shards."""
        self._app.queue("q", fair=True, shards=number)
        runtime = await self._app.runtime()
        self._engine, self._router = runtime.engine, runtime.routers.of("q")
        await self._engine.declare("q")
        await self._router.serving()
        assert not (await self._router.settled(PATIENCE_S)).phase
        broadcast = HoldBroadcast(self._engine, {"q": self._look})
        self._heard = broadcast.listening("q", lambda *_: None)
        self._finish = broadcast.finish

    async def _look(self) -> Sequence[Shard]:
        self.rounds += 1
        while self.heard_in_a_round:
            self._heard(CLAIM, Limited(self.heard_in_a_round.pop()), None)
        return await self._router.serving()

    async def hear(self, *delays_us: int, scope: Scope = "queue") -> dict[str, int]:
        """Let jobs end, and wait for the rounds; the minutes that each held shard is held."""
        for delay_us in delays_us:
            self._heard(CLAIM, Limited(delay_us, scope=scope), None)
        await self._finish(PATIENCE_S)
        seen = [await self._engine.overview(shard) for shard in await self._router.names()]
        return {
            one.queue: round((hold.until - one.at) / MINUTE)
            for one in seen
            for hold in one.holds
            if hold.until is not None
        }

    async def release(self) -> None:
        for shard in await self._router.names():
            assert await self._engine.release(shard, "rate_limited")


@pytest.fixture
async def shards(app: Faena) -> Shards:
    """Two of them."""
    shards = Shards(app)
    await shards.start(2)
    return shards


async def test_a_shorter_hold_is_told_after_a_longer_one(shards: Shards) -> None:
    assert await shards.hear(HOUR) == {"q": 60, "q/1": 60}
    await shards.release()
    assert await shards.hear(10 * MINUTE) == {"q": 10, "q/1": 10}


async def test_a_longer_hold_stays(shards: Shards) -> None:
    await shards.hear(HOUR)
    assert await shards.hear(10 * MINUTE) == {"q": 60, "q/1": 60}


async def test_the_longest_hold_heard_at_once_is_told_once(shards: Shards) -> None:
    assert await shards.hear(MINUTE, HOUR, 10 * MINUTE) == {"q": 60, "q/1": 60}
    assert shards.rounds == 1


async def test_a_hold_is_told_after_a_round_that_failed(
    shards: Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        make_fail(patch, "hold", "error('damaged')")
        assert await shards.hear(HOUR) == {}
    assert await shards.hear(10 * MINUTE) == {"q": 10, "q/1": 10}


async def test_a_longer_hold_that_is_heard_during_a_round_makes_one_more(shards: Shards) -> None:
    shards.heard_in_a_round = [HOUR]
    assert await shards.hear(MINUTE) == {"q": 60, "q/1": 60}
    assert shards.rounds == 2


async def test_what_is_said_of_a_tenant_is_not_told_to_other_shards(shards: Shards) -> None:
    assert await shards.hear(HOUR, scope="tenant") == {}


async def test_the_only_shard_of_a_queue_knows_by_itself(app: Faena) -> None:
    shards = Shards(app)
    await shards.start(1)
    assert await shards.hear(HOUR) == {}
