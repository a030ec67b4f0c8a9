"""What a provider said to a job is told to the other homes of the queue, every time anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from faena.engine import Engine
from faena.engine.scripts import Claim
from faena.errors import StoreUnavailable
from faena.outcomes import Limited
from faena.sharding.table import Home
from faena.worker.fetch.hold_broadcast import Herald

CLAIM = Claim("job", "lease", None, 0.0, 0, 0, 0)
HOUR, MINUTE = 3_600_000_000, 60_000_000


class Homes:
    """Two homes that note how long they were told to wait."""

    def __init__(self) -> None:
        self.told: list[tuple[str, float]] = []
        self.is_down = False
        herald = Herald(cast("Engine", self), {"q": self.look})
        self._heard = herald.listening("q", lambda *_: None)
        self._finish = herald.finish

    async def look(self) -> Sequence[Home]:
        if self.is_down:
            raise StoreUnavailable("no server", op="homes")
        return [Home("q", "q"), Home("q/1", "q")]

    async def ask(self, _script: str, home: str, args: list[Any]) -> None:
        self.told.append((home, args[1]))

    async def hear(self, *delays_us: int) -> list[tuple[str, float]]:
        """Let jobs end while no round is under way; what the homes are told in minutes."""
        self.told.clear()
        for delay_us in delays_us:
            self._heard(CLAIM, Limited(delay_us), None)
        await self._finish(5)
        return [(home, round(left_us / MINUTE)) for home, left_us in self.told]


@pytest.fixture
def homes() -> Homes:
    return Homes()


async def test_a_shorter_hold_is_told_after_a_longer_one(homes: Homes) -> None:
    assert await homes.hear(HOUR) == [("q", 60), ("q/1", 60)]
    assert await homes.hear(10 * MINUTE) == [("q", 10), ("q/1", 10)]


async def test_the_longest_hold_heard_at_once_is_told_once(homes: Homes) -> None:
    assert await homes.hear(MINUTE, HOUR, 10 * MINUTE) == [("q", 60), ("q/1", 60)]


async def test_a_hold_is_told_after_a_round_that_failed(homes: Homes) -> None:
    homes.is_down = True
    assert await homes.hear(HOUR) == []
    homes.is_down = False
    assert await homes.hear(10 * MINUTE) == [("q", 10), ("q/1", 10)]
