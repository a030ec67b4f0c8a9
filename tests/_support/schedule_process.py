"""A process that has schedules fire, by a clock that the test moves for all of them.

The clock is a file of eight bytes. Whatever a process fires it writes to the ledger, which may lack
what one was about to write when it was killed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import struct
from pathlib import Path
from typing import Any

import msgspec

from faena import Faena, Retain
from faena.engine.calls.scheduling import Fired
from faena.scheduling import fire as firing
from tests._support.ledger import Ledger

LOOK_S = 0.02
NAMESPACE = "month"
PLAIN, SPREAD = "plain", "spread"
TENANTS = ("t0", "t1", "t2", "t3")


class MonthPlan(msgspec.Struct):
    """What a test and its processes agree on."""

    url: str
    ledger: str
    clock: str


class FileClock:
    """Microseconds that every process reads and the test writes."""

    def __init__(self, path: str | Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    def __call__(self) -> int:
        return int(struct.unpack("<q", os.pread(self._file, 8, 0))[0])

    def set(self, now: int) -> None:
        os.pwrite(self._file, struct.pack("<q", now), 0)

    def close(self) -> None:
        os.close(self._file)


def open_month(plan: MonthPlan, clock: FileClock) -> Faena:
    """Schedules of every kind, on a queue with one shard and on one that will have several."""
    app = Faena("month", plan.url, namespace=NAMESPACE, clock=clock, patience="60s")
    retain = Retain(completed_count=0)
    plain = app.queue(PLAIN, retain=retain)
    spread = app.queue(SPREAD, retain=retain, fair=True)

    @plain.task
    async def work() -> None: ...

    @spread.task
    async def share() -> None: ...

    def declare(name: str, **terms: Any) -> None:
        app.schedule(name, work, missed="all", **terms)

    declare("two-hourly", cron="0 */2 * * *")
    declare("odd", every="2h47m")
    declare("jittered", every="3h", jitter="2h")
    declare("madrid", cron="30 2 * * *", tz="Europe/Madrid")
    declare("new-york", cron="15,45 1-3 * * *", tz="America/New_York")
    declare("lord-howe", cron="10 */5 * * *", tz="Australia/Lord_Howe")
    declare("skipping", every="5h", overlap="skip")
    declare("queueing", every="5h", overlap="queue")
    declare("bounded", every="5h", start="2026-03-05", end="2026-03-20T12:00", count=60)
    app.schedule("latest", work, every="30m")
    for tenant in TENANTS:
        app.schedule(f"{tenant}-all", share, every="5h", missed="all", tenant=tenant)
        app.schedule(
            f"{tenant}-skip", share, every="11h", missed="all", tenant=tenant, overlap="skip"
        )
    return app


def record_shots(ledger: Ledger) -> None:
    """Write down every job that this process has made."""
    fire = firing.fire

    async def recorded(engine: Any, shard: str, firing: Any, *args: Any, **options: Any) -> Fired:
        fired = await fire(engine, shard, firing, *args, **options)
        if firing.spec:
            ledger.write(fired.outcome, firing.id, detail=shard)
        return fired

    firing.fire = recorded


async def keep_time(plan: MonthPlan) -> None:
    ledger, clock = Ledger(plan.ledger), FileClock(plan.clock)
    record_shots(ledger)
    async with open_month(plan, clock) as app:
        scheduler = await app.schedules.scheduler([PLAIN, SPREAD])
        scheduler.look_s = LOOK_S
        ledger.write("up")
        await scheduler.run()


def main(plan: MonthPlan) -> None:
    logging.basicConfig(level=logging.ERROR)
    asyncio.run(keep_time(plan))
