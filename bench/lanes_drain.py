"""Drains of laned queues beside drains of an unlaned one, in turns.

The speed of a machine that others use as well changes within minutes. So an unlaned queue is
drained before and after every one or two others, and each is rated by the mean of the two around
it. Where even that is too coarse, the CPU time that a job costs the server tells more.
"""

from __future__ import annotations

import asyncio
import math
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.adapter import PeerFailed
from bench.lanes_fill import producing
from bench.lanes_shop import QUEUE, working
from bench.server import Server

_SETTLED_S = 60.0
_LIVE = tuple(f"ZCARD bench:{{{QUEUE}}}:{name}" for name in ("ready", "blocked", "running"))


class Case(NamedTuple):
    """A kind of queue and its number of tenants."""

    kind: str
    tenants: int

    @property
    def name(self) -> str:
        return f"{self.kind} {self.tenants:,}" if self.tenants else self.kind


class Drain(NamedTuple):
    """One drain: its rate, and what each job cost the server in commands and in CPU time."""

    jobs_per_s: float
    server_us_per_job: float
    server_cpu_us_per_job: float
    enqueue_per_s: float
    worker_cpu_us_per_job: float
    """From the first job on: without what the process takes to begin."""


class Rated(NamedTuple):
    """All drains of a case; `ratios` are to the unlaned ones around each, `failed` says why not."""

    case: Case
    drains: Sequence[Drain]
    ratios: Sequence[float]
    failed: Sequence[str] = ()

    @property
    def rate(self) -> float:
        return _median(one.jobs_per_s for one in self.drains)

    @property
    def best(self) -> float:
        """The rate of the fastest drain: what every drain costs, without what others cost some."""
        return max((one.jobs_per_s for one in self.drains), default=math.nan)

    @property
    def ratio(self) -> float:
        return _median(self.ratios)

    @property
    def server_us(self) -> float:
        return _median(one.server_us_per_job for one in self.drains)

    @property
    def server_cpu_us(self) -> float:
        return _median(one.server_cpu_us_per_job for one in self.drains)

    @property
    def worker_cpu_us(self) -> float:
        return _median(one.worker_cpu_us_per_job for one in self.drains)

    @property
    def enqueue_rate(self) -> float:
        return _median(one.enqueue_per_s for one in self.drains)


def _median(samples: Iterable[float]) -> float:
    found = list(samples)
    return statistics.median(found) if found else math.nan


BASE = Case("unlaned", 0)


def compare(
    server: Server,
    scratch: Path,
    cases: Sequence[Case],
    jobs: int,
    *,
    rounds: int,
    between: int,
    base: Case = BASE,
) -> list[Rated]:
    """Drain every case in every round, `between` of them between two drains of `base`; these come
    first in the answer.
    """
    drains: dict[Case, list[Drain]] = defaultdict(list)
    ratios: dict[Case, list[float]] = defaultdict(list)
    failed: dict[Case, list[str]] = defaultdict(list)
    before = _noted(server, scratch, base, jobs)
    for number in range(rounds):
        print(f"drain: round {number + 1} of {rounds}, {jobs:,} jobs each", file=sys.stderr)
        for group in _groups(_rotated(cases, number), between):
            found: dict[Case, Drain] = {}
            for case in group:
                try:
                    found[case] = _noted(server, scratch, case, jobs)
                except PeerFailed as error:  # the others are worth their time all the same
                    failed[case].append(str(error))
            after = _noted(server, scratch, base, jobs)
            drains[base] += [before]
            for case, drain in found.items():
                drains[case].append(drain)
                ratios[case].append(2 * drain.jobs_per_s / (before.jobs_per_s + after.jobs_per_s))
            before = after
    drains[base].append(before)
    ratios[base] = [1.0]
    return [Rated(case, drains[case], ratios[case], failed[case]) for case in (base, *cases)]


def _rotated(cases: Sequence[Case], number: int) -> list[Case]:
    at = number % len(cases)
    return [*cases[at:], *cases[:at]]


def _groups(cases: Sequence[Case], size: int) -> Iterator[Sequence[Case]]:
    for start in range(0, len(cases), size):
        yield cases[start : start + size]


def _noted(server: Server, scratch: Path, case: Case, jobs: int) -> Drain:
    drain = drain_once(server, scratch, case, jobs)
    print(
        f"  {case.name:<20} {drain.jobs_per_s:>9,.0f} jobs/s, server {drain.server_us_per_job:.1f} "
        f"us/job ({drain.server_cpu_us_per_job:.1f} of CPU), in at {drain.enqueue_per_s:,.0f}/s",
        file=sys.stderr,
    )
    return drain


def drain_once(server: Server, scratch: Path, case: Case, jobs: int) -> Drain:
    """Fill a queue and let one worker process empty it."""
    server.flush()
    began = time.perf_counter()
    asyncio.run(_fill(server.url, case, jobs))
    filled_s = time.perf_counter() - began
    server.wait_alone()
    before = server.cost()
    with working(server.url, scratch, case.kind) as served:
        served.worker.wait_for(1)
        begun_us = served.worker.cpu_us
        served.worker.wait_for(jobs)
        wait_settled(server)
        settled_ns, after = time.monotonic_ns(), server.cost()
        worker_us = served.worker.cpu_us - begun_us
        if (ran := served.ledger.finished) != jobs:
            raise PeerFailed(f"handlers ran {ran} times for {jobs} jobs")
    return Drain(
        jobs / (settled_ns - served.ledger.first_ns) * 1e9,
        (after.commands_us - before.commands_us) / jobs,
        (after.cpu_us - before.cpu_us) / jobs,
        jobs / filled_s,
        worker_us / jobs,
    )


async def _fill(url: str, case: Case, jobs: int) -> None:
    async with producing(url, case.kind) as producer:
        await producer.fill(jobs, max(case.tenants, 1))


def wait_settled(server: Server) -> None:
    """Return when no job waits or runs."""
    until = time.monotonic() + _SETTLED_S
    while left := server.unsettled(_LIVE):
        if time.monotonic() > until:
            raise PeerFailed(f"{left} jobs were still unsettled {_SETTLED_S:g} s after the last")
        time.sleep(0.001)
