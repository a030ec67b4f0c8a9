"""What a claim costs the server, by the number of lanes that wait.

Queues with 10 to 100,000 lanes stand on the server at once and are asked in turns, a little each
time, so that a machine which changes its speed does so to all of them. A claim is one exchange: it
settles what the last one claimed and claims as many again. Its time is the server's own, `usec` of
FCALL in INFO commandstats: without sockets and without Python.
"""

from __future__ import annotations

import asyncio
import math
import random
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import redis

from bench.lanes_fill import Producer, decades, producing
from bench.server import Server
from faena.engine.scripts import Settlement, Turn
from faena.outcomes import Completed
from faena.producing.batcher import CallIds

SIZES: tuple[int, ...] = (1, 100)
"""Jobs in a claim: the fewest, and as many as a worker takes at most."""

_PER_LANE = 6  # of each; a large claim empties a lane at a visit
_CALLS = {1: 100, 100: 10}
_PER_ROUND = sum(size * (calls + 1) for size, calls in _CALLS.items())


class Fit(NamedTuple):
    """us = base + slope * log10(lanes), and how much of the spread that explains."""

    base: float
    slope: float
    r2: float

    def at(self, lanes: int) -> float:
        return self.base + self.slope * math.log10(lanes)


class Asked:
    """One queue: what was claimed last, and what all claims of each size have cost."""

    def __init__(self, lanes: int, producer: Producer, queue: str) -> None:
        self.lanes = lanes
        self._producer = producer
        self._queue = queue
        self._calls = CallIds()
        self._caller = self._calls()
        self._held: deque[tuple[str, str]] = deque()
        self._spent: dict[int, float] = dict.fromkeys(SIZES, 0.0)
        self._asked: dict[int, int] = dict.fromkeys(SIZES, 0)

    async def claim(self, size: int, client: Any) -> None:
        """A few calls of one size, with the server's counter read before and after."""
        await self._exchange(size)  # settles what another size has left
        before = _fcall_us(client)
        for _ in range(_CALLS[size]):
            await self._exchange(size)
        self._spent[size] += _fcall_us(client) - before
        self._asked[size] += _CALLS[size]

    async def _exchange(self, size: int) -> None:
        done = [Settlement(*held, Completed()) for held in self._held]
        self._held.clear()
        turn = Turn(self._calls(), size, done, None, is_sweep=False)
        found = await self._producer.engine.exchange(self._queue, self._caller, "bench", turn)
        self._held.extend((claim.id, claim.lease) for claim in found.claimed)
        if len(found.claimed) != size:
            raise RuntimeError(f"a claim must find {size} jobs, got {len(found.claimed)}")

    def us_per_job(self, size: int) -> float:
        return self._spent[size] / self._asked[size] / size


class Curve(NamedTuple):
    """The cost of a job in claims of one size: at each number of lanes, and without any."""

    size: int
    points: Sequence[tuple[int, float]]
    unlaned: float

    @property
    def fit(self) -> Fit:
        return log_fit(self.points)


def measure(server: Server, most: int, rounds: int) -> list[Curve]:
    """A curve for each size of claim."""
    server.flush()
    return asyncio.run(_measure(server.url, most, rounds))


async def _measure(url: str, most: int, rounds: int) -> list[Curve]:
    client: Any = redis.Redis.from_url(url, protocol=2)
    async with AsyncExitStack() as stack:
        queues = [
            await _filled(stack, url, lanes, _PER_ROUND * (rounds + 1))
            for lanes in (0, *decades(most, per_decade=2))
        ]
        print(f"claims: {rounds} rounds over {len(queues)} queues", file=sys.stderr)
        for _ in range(rounds):
            for queue in random.sample(queues, len(queues)):
                for size in SIZES:
                    await queue.claim(size, client)
    client.close()
    return list(_curves(queues))


async def _filled(stack: AsyncExitStack, url: str, lanes: int, least: int) -> Asked:
    name, jobs = f"claims{lanes}", max(least, _PER_LANE * lanes)
    print(f"claims: {jobs:,} jobs in {lanes:,} lanes", file=sys.stderr)
    kind = "laned" if lanes else "unlaned"
    producer = await stack.enter_async_context(producing(url, kind, name))
    await producer.fill(jobs, max(lanes, 1))
    return Asked(lanes, producer, name)


def _curves(queues: Sequence[Asked]) -> Iterator[Curve]:
    for size in SIZES:
        figures = [(queue.lanes, queue.us_per_job(size)) for queue in queues]
        yield Curve(size, figures[1:], figures[0][1])


def _fcall_us(client: Any) -> float:
    return float(client.info("commandstats")["cmdstat_fcall"]["usec"])


def log_fit(points: Sequence[tuple[int, float]]) -> Fit:
    """Least squares on the logarithm."""
    logs = [math.log10(lanes) for lanes, _ in points]
    costs = [cost for _, cost in points]
    middle, mean = sum(logs) / len(logs), sum(costs) / len(costs)
    spread = sum((one - middle) ** 2 for one in logs)
    slope = sum((x - middle) * (y - mean) for x, y in zip(logs, costs, strict=True)) / spread
    base = mean - slope * middle
    missed = sum((y - base - slope * x) ** 2 for x, y in zip(logs, costs, strict=True))
    total = sum((y - mean) ** 2 for y in costs)
    return Fit(base, slope, 1 - missed / total if total else 1.0)
