"""Who waits for whom: a quiet tenant beside a noisy one, and what busy tenants are given.

Waits and shares are read from what handlers note, not from the broker.
"""

from __future__ import annotations

import asyncio
import math
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.adapter import PeerFailed
from bench.lanes_fill import producing
from bench.lanes_shop import QUEUE, Served, Work, tenant_name, working
from bench.server import Server
from faena.lanes import lane_of

WEIGHTS = (1, 2, 4)
EQUALS = 20

_NOISE_MS, _NOISE_SLOTS = 20, 50
_REST_S = 2.0  # a server goes on for a while with what was flushed
_QUIET_EVERY_S = 0.025
_QUIET = 1  # the noisy tenant is 0
_WARM = 20


class Waits(NamedTuple):
    """Milliseconds from the enqueue call of a quiet tenant's job to its first line."""

    p50: float
    p99: float
    samples: int
    noise_left: int


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


def quiet_waits(server: Server, scratch: Path, *, noise: int, samples: int) -> Waits:
    """A job now and then, while a neighbour's `noise` jobs keep every slot busy."""
    print(f"neighbours: {samples} quiet jobs beside {noise:,} waiting ones", file=sys.stderr)
    server.flush()
    time.sleep(_REST_S)
    return asyncio.run(_quiet_waits(server.url, scratch, noise, samples))


def median_of(rounds: Sequence[Waits]) -> Waits:
    """The median round in each respect: a machine that stands still for a moment spoils one."""
    return Waits(
        statistics.median(one.p50 for one in rounds),
        statistics.median(one.p99 for one in rounds),
        sum(one.samples for one in rounds),
        min(one.noise_left for one in rounds),
    )


async def _quiet_waits(url: str, scratch: Path, noise: int, samples: int) -> Waits:
    async with producing(url, "laned") as producer:
        await producer.fill(noise, 1, nap_ms=_NOISE_MS)
        with working(url, scratch, "laned", _NOISE_SLOTS) as served:
            await _until_warm(served, producer.task, noise)
            await _send_now_and_then(producer.task, samples)
            await _wait_for(lambda: len(served.ledger.samples) >= samples)
            left = noise - served.counters.first(1)[0]
    if noise and left <= 0:
        raise PeerFailed(f"{noise:,} noisy jobs must outlast {samples} quiet ones, none were left")
    found = sorted(served.ledger.samples)
    return Waits(_ms(found, 0.5), _ms(found, 0.99), len(found), max(left, 0))


async def _until_warm(served: Served, task: Any, noise: int) -> None:
    if not noise:
        await task.enqueue_many([Work() for _ in range(_WARM)], tenant=tenant_name(0))
    await _wait_for(lambda: served.ledger.finished >= _WARM)


async def _send_now_and_then(task: Any, samples: int) -> None:
    began = time.monotonic()
    for number in range(samples):
        await asyncio.sleep(began + number * _QUIET_EVERY_S - time.monotonic())
        work = Work(_QUIET, sent_ns=time.monotonic_ns())
        await task.enqueue(work, tenant=tenant_name(_QUIET))


async def _wait_for(is_done: Any, within_s: float = 60.0) -> None:
    until = time.monotonic() + within_s
    while not is_done():
        if time.monotonic() > until:
            raise PeerFailed(f"the worker was not done after {within_s:g} s")
        await asyncio.sleep(0.002)


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
