"""Who waits for whom: a quiet tenant beside a noisy one, and what busy tenants are given.

Waits and shares are read from what handlers note, not from the broker.
"""

from __future__ import annotations

import asyncio
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.adapter import PeerFailed
from bench.lanes_fill import producing
from bench.lanes_shop import QUEUE, Served, Work, tenant_name, working
from bench.server import Server
from faena.tenancy.lanes import lane_of

WEIGHTS = (1, 2, 4)
EQUALS = 20

_NOISE_MS, _NOISE_SLOTS = 20, 50
_REST_S = 2.0  # a server goes on for a while with what was flushed
_QUIET_EVERY_S = 0.025
_QUIET = 1  # the noisy tenant is 0
_WARM = 200


class Waits(NamedTuple):
    """Milliseconds from the enqueue call of a quiet tenant's job to its first line."""

    p50: float
    p90: float
    p99: float
    samples: int


class Shares(NamedTuple):
    """Jobs served per tenant while all had more, their weights, and Jain's index of both."""

    weights: Sequence[int]
    served: Sequence[int]

    @property
    def jain(self) -> float:
        """1 when every tenant has what its weight says; 1/n when one has all."""
        parts = [jobs / weight for jobs, weight in zip(self.served, self.weights, strict=True)]
        return sum(parts) ** 2 / (len(parts) * sum(part * part for part in parts))

    @property
    def relative(self) -> list[float]:
        """What each was given, the first tenant's being 1."""
        return [jobs / self.served[0] for jobs in self.served]


class Neighbours(NamedTuple):
    """What a quiet tenant waits alone, and beside a noisy one."""

    alone: Waits
    beside: Waits
    noise: int
    """Jobs the noisy tenant had waiting at first."""
    noise_left: int


def neighbours(
    server: Server, scratch: Path, *, noise: int, spells: int, samples: int
) -> Neighbours:
    """A job now and then from a quiet tenant, while another's `noise` jobs keep every slot busy.

    The noisy tenant is held every other spell, which is when the quiet one is alone: a machine that
    is slow for a minute is so for both.
    """
    print(f"neighbours: {spells} spells of each, {noise:,} noisy jobs", file=sys.stderr)
    server.flush()
    time.sleep(_REST_S)
    return asyncio.run(_neighbours(server.url, scratch, noise, spells, samples))


async def _neighbours(url: str, scratch: Path, noise: int, spells: int, samples: int) -> Neighbours:
    alone: list[list[int]] = []
    beside: list[list[int]] = []
    async with producing(url, "laned") as producer:
        await producer.fill(noise, 1, nap_ms=_NOISE_MS)
        noisy = producer.tenant(tenant_name(0))
        with working(url, scratch, "laned", _NOISE_SLOTS) as served:
            await _until_busy(served)
            for _ in range(spells):
                await noisy.hold("a quiet spell")
                await _until_idle(served)
                alone.append(await _spell(served, producer.task, samples))
                await noisy.release()
                await _until_busy(served)
                beside.append(await _spell(served, producer.task, samples))
            left = noise - served.counters.first(1)[0]
    if left <= 0:
        raise PeerFailed(f"{noise:,} noisy jobs must outlast the quiet ones, none were left")
    return Neighbours(_waits(alone), _waits(beside), noise, left)


async def _until_busy(served: Served) -> None:
    """Until the noise has run for a while."""
    enough = served.ledger.finished + _WARM
    await _wait_for(lambda: served.ledger.finished >= enough)


async def _until_idle(served: Served) -> None:
    """Until all the noise that was running has ended, and the worker waits for work."""
    await asyncio.sleep(2 * _NOISE_MS / 1000)
    await _wait_for(lambda: served.ledger.finished >= sum(served.counters.first(2)))
    await asyncio.sleep(_REST_S / 10)


async def _spell(served: Served, task: Any, samples: int) -> list[int]:
    before = len(served.ledger.samples)
    began = time.monotonic()
    for number in range(samples):
        await asyncio.sleep(began + number * _QUIET_EVERY_S - time.monotonic())
        work = Work(_QUIET, sent_ns=time.monotonic_ns())
        await task.enqueue(work, tenant=tenant_name(_QUIET))
    await _wait_for(lambda: len(served.ledger.samples) >= before + samples)
    return served.ledger.samples[before:]


async def _wait_for(is_done: Callable[[], bool], within_s: float = 60.0) -> None:
    until = time.monotonic() + within_s
    while not is_done():
        if time.monotonic() > until:
            raise PeerFailed(f"the worker was not done after {within_s:g} s")
        await asyncio.sleep(0.002)


def _waits(spells: list[list[int]]) -> Waits:
    """Of each share the median spell's: a machine that stands still for a moment spoils one."""
    ordered = [sorted(one) for one in spells]
    p50, p90, p99 = (
        statistics.median(_ms(one, share) for one in ordered) for share in (0.5, 0.9, 0.99)
    )
    return Waits(p50, p90, p99, sum(map(len, spells)))


def _ms(ordered: Sequence[int], share: float) -> float:
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)] / 1e6


def shares(server: Server, scratch: Path, weights: Sequence[int], jobs: int) -> Shares:
    """Serve tenants with as many waiting jobs each until a third of all are done; then count."""
    print(f"shares: {len(weights)} tenants, {jobs:,} jobs", file=sys.stderr)
    server.flush()
    asyncio.run(_backlog(server.url, weights, jobs))
    with working(server.url, scratch, "laned") as served:
        served.worker.wait_for(jobs // 3)
        counted = served.counters.first(len(weights))
    if max(counted) >= jobs // len(weights):
        raise PeerFailed("every tenant must have jobs left when shares are counted")
    return Shares(weights, counted)


async def _backlog(url: str, weights: Sequence[int], jobs: int) -> None:
    async with producing(url, "laned") as producer:
        await producer.fill(jobs, len(weights))
        for number, weight in enumerate(weights):
            if weight != 1:
                lane = lane_of(tenant_name(number))
                await producer.engine.tenant(QUEUE, lane, {"weight": str(weight)})
