"""`python -m bench.script_latency`: how long script calls take on a server with a million jobs.

A queue is filled, then each operation is called for a while at the sizes workers and producers use,
and at last all of them mixed. The figures are the server's own: `INFO latencystats` of FCALL, the
time a call kept the server from everybody else, without sockets and queues in front of it. A call
that breaks the goal (p99.9 of 5 ms in the mixed load) is named, and the exit code is 1.

The first row is a loop of additions that touches no data: what the machine itself does to a call of
about that length. Its p99.9 cannot be beaten by any script that takes as long. A redrive of 100,000
dead jobs comes last, with such a loop between its slices (see `script_redrive`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from bench.script_meter import Figures, Meter
from bench.script_redrive import measure_redrives
from bench.server import running_server
from faena.engine import Address, Engine, Wire
from faena.engine.envelope import Facts, seal
from faena.engine.script_library import Script
from faena.engine.scripts import Settlement, Turn
from faena.engine.settings import declaration
from faena.options import QueueOptions, Retain
from faena.outcomes import Buried, Completed, ErrorRecord, Outcome, Retried, Snoozed
from faena.producing.batcher import BATCH, CallIds
from faena.worker.fetch.fetcher import BATCH as MOST

GOAL_US = 5000.0
QUEUE = "million"
BODY = b'{"task":"noop","payload":{"text":"' + b"x" * 160 + b'"}}'
RESULT = b'{"total":42}'
ERROR = ErrorRecord(name="Boom", message="it broke", stack="line\n" * 40)
LEASE_US = 30_000_000
LOOP = Script(
    "loop",
    "bench_loop",
    "#!lua name=bench_loop\n"
    "redis.register_function('bench_loop', function(_, args)\n"
    "local sum = 0 for i = 1, tonumber(args[1]) do sum = sum + i end return sum end)",
    source="",
    sha="",
)
ROUNDS = 250_000
MIXED = "all mixed"

PARTS = ("calls", "redrive")

Call = Callable[[], Awaitable[object]]


class Clock:
    """The queue's time: the machine's, and as far ahead of it as leases had to run out."""

    def __init__(self) -> None:
        self.ahead_us = 0

    def __call__(self) -> int:
        return time.time_ns() // 1000 + self.ahead_us


class Load:
    """Calls against one queue, each leaving about as many jobs as it found."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._calls = CallIds()
        self._producer = self._calls()
        self._worker = self._calls()
        self._held: deque[tuple[str, str]] = deque()
        self._numbers = 0
        retain = Retain(completed="1h", completed_count=50_000)
        engine.know(QUEUE, declaration(QueueOptions(retain=retain, max_deliveries=100)))

    async def fill(self, jobs: int) -> None:
        for done in range(0, jobs, 1000):
            await self.enqueue(1000, 3_600_000_000 if done % 10_000 == 0 else 0)
            if done % 100_000 == 0:
                print(f"filling: {done:,} of {jobs:,} jobs", file=sys.stderr)

    def _id(self) -> str:
        self._numbers += 1
        return f"job{self._numbers:012d}"

    async def enqueue(self, size: int, delay_us: int = 0) -> None:
        facts: Facts = {"delay": delay_us} if delay_us else {}
        spec = seal(random.choice((1, 5, 10, 20, 50)), facts, BODY)
        jobs = [(self._id(), spec) for _ in range(size)]
        await self._engine.enqueue(QUEUE, self._producer, self._calls(), jobs)

    async def exchange(self, size: int, *outcomes: Outcome) -> None:
        """Settle what is held, in the given ways, and claim as much again."""
        settled = [
            Settlement(*self._held.popleft(), random.choice(outcomes))
            for _ in range(min(size, len(self._held)))
        ]
        turn = Turn(self._calls(), size, settled, {"run:12": size}, is_sweep=False)
        exchanged = await self._engine.exchange(QUEUE, self._worker, "bench", turn)
        self._held.extend((claim.id, claim.lease) for claim in exchanged.claimed)

    async def rescue(self, size: int) -> None:
        """Claim, let the leases run out, and have the next call rescue them."""
        await self.exchange(size, Completed())
        self._held.clear()
        self._clock.ahead_us += LEASE_US + 1_000_000
        await self.exchange(1, Completed())

    async def renew(self, size: int) -> None:
        while len(self._held) < size:
            turn = Turn(self._calls(), MOST, (), None, is_sweep=False)
            exchanged = await self._engine.exchange(QUEUE, self._worker, "bench", turn)
            self._held.extend((claim.id, claim.lease) for claim in exchanged.claimed)
        await self._engine.renew(QUEUE, [self._held[i] for i in range(size)])

    async def operate(self, op: str) -> None:
        """One operation on a waiting job, and one of the reads."""
        job = f"job{random.randrange(self._numbers // 2, self._numbers):012d}"
        match op:
            case "change":
                await self._engine.change(QUEUE, job, priority=random.randrange(1, 100))
            case "cancel":
                await self._engine.cancel(QUEUE, [job])
            case "look":
                await self._engine.look(QUEUE, [job])
            case "explain":
                await self._engine.explain(QUEUE, job)
            case "page":
                await self._engine.page(QUEUE, "ready", 50, after=("", ""), is_reverse=True)
            case "clean":
                await self._engine.clean(QUEUE, "completed", 0, 200)
            case _:
                await self._engine.overview(QUEUE)


def _operations(load: Load) -> dict[str, Call]:
    fails = (Completed(), Completed(RESULT), Retried(1_000_000, ERROR), Buried(ERROR))
    named: dict[str, Call] = {
        "enqueue 1": lambda: load.enqueue(1),
        "enqueue 100": lambda: load.enqueue(100),
        f"enqueue {BATCH}": lambda: load.enqueue(BATCH),
        "enqueue 100 delayed": lambda: load.enqueue(100, 60_000_000),
        "exchange 1": lambda: load.exchange(1, Completed()),
        "exchange 10": lambda: load.exchange(10, Completed()),
        f"exchange {MOST}": lambda: load.exchange(MOST, Completed()),
        f"exchange {MOST} mixed": lambda: load.exchange(MOST // 2, *fails, Snoozed(1_000_000)),
        f"rescue {MOST}": lambda: load.rescue(MOST),
        "renew 200": lambda: load.renew(200),
    }
    for op in ("change", "cancel", "look", "explain", "page", "clean", "overview"):
        named[op] = lambda op=op: load.operate(op)
    return named


def _any_of(calls: list[Call]) -> Call:
    def call() -> Awaitable[object]:
        return random.choice(calls)()

    return call


async def _repeat(call: Call, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        await call()


async def _measure(parts: Sequence[str], jobs: int, seconds: float) -> list[Figures]:
    figures = list[Figures]()
    if "calls" in parts:
        with tempfile.TemporaryDirectory() as scratch, running_server(Path(scratch)) as server:
            figures += await _measure_calls(server.url, jobs, seconds)
    if "redrive" in parts:
        figures += await measure_redrives()
    return figures


async def _measure_calls(url: str, jobs: int, seconds: float) -> list[Figures]:
    wire, meter, clock = Wire(Address.parse(url)), Meter(url), Clock()
    load, figures = Load(Engine(wire, namespace="bench", clock=clock), clock), list[Figures]()
    try:
        await load.fill(jobs)
        print(f"measuring with {jobs:,} jobs", file=sys.stderr)
        operations = _operations(load)
        loop: Call = partial(wire.run, LOOP, ["loop"], [ROUNDS], patience_s=1)
        for name, call in ({"(bare loop)": loop} | operations).items():
            await call()
            meter.reset()
            await _repeat(call, seconds)
            figures.append(meter.read(name))
            print(f"  {name}: p99.9 {figures[-1].p999:,.0f} us", file=sys.stderr)
        meter.reset()
        await _repeat(_any_of(list(operations.values())), 5 * seconds)
        figures.append(meter.read(MIXED))
    finally:
        meter.close()
        await wire.close()
    return figures


def _print_table(figures: list[Figures]) -> None:
    print(f"{'script call':<22}{'calls':>9}{'p50':>9}{'p99':>9}{'p99.9':>9}{'worst':>9}  us")
    for one in figures:
        mark = "" if one.p999 <= GOAL_US else "  over the goal"
        print(
            f"{one.name:<22}{one.calls:>9,}{one.p50:>9,.0f}{one.p99:>9,.0f}"
            f"{one.p999:>9,.0f}{one.worst:>9,.0f}{mark}"
        )


def main() -> int:
    """Measure and print; 1 when the mixed load misses the goal."""
    parser = argparse.ArgumentParser(prog="./dev bench scripts", description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    parser.add_argument("--jobs", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--seconds", type=float, default=3.0, metavar="S", help="per operation")
    parser.add_argument("--json", action="store_true", help="end stdout with one JSON object")
    options = parser.parse_args()
    figures = asyncio.run(_measure(options.parts, options.jobs, options.seconds))
    _print_table(figures)
    if options.json:
        print(json.dumps([one._asdict() for one in figures]))
    return int(any(one.p999 > GOAL_US for one in figures if one.name == MIXED))


if __name__ == "__main__":
    sys.exit(main())
