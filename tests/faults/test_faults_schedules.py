"""Five schedulers through a month of spring, killed and frozen: every instant is fired once.

The clocks of Madrid, New York and Lord Howe change in that month. Jobs are taken away as soon as
they are there and nothing of them is kept, so that a second one of an instant would be seen.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from faena import Faena
from faena.engine.calls.scheduling import read
from faena.engine.scripts import Settlement, Turn
from faena.outcomes import Completed
from faena.producing.batcher import CallIds
from faena.scheduling.due import job_id
from faena.scheduling.options import Terms
from tests._support import schedule_process
from tests._support.eventually import eventually
from tests._support.ledger import Ledger
from tests._support.schedule_process import PLAIN, SPREAD, FileClock, MonthPlan, open_month
from tests._support.valkey import Server
from tests._support.worker_processes import WorkerProcess

START = datetime(2026, 3, 1, tzinfo=UTC)
END = datetime(2026, 4, 6, tzinfo=UTC)
DAY = 86_400 * 10**6
STEP = 10 * 60 * 10**6
MOST_BEHIND = DAY
"""Fewer instants than "all" makes up for: the clock waits for whoever is behind."""
SCHEDULERS = 5
KILLS = FREEZES = 12


def us(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server("appendonly no", unix=True) as server:
        yield server


@pytest.fixture
def plan(server: Server, tmp_path: Path) -> MonthPlan:
    return MonthPlan(server.url, str(tmp_path / "ledger"), str(tmp_path / "clock"))


class Month:
    """The month under way: its clock, whoever keeps time, and the jobs that came."""

    def __init__(self, plan: MonthPlan, app: Faena, clock: FileClock) -> None:
        self.plan = plan
        self.app = app
        self.clock = clock
        self.started: list[WorkerProcess] = []
        self.jobs: Counter[str] = Counter()
        self._calls = CallIds()
        self._settled: dict[str, list[Settlement]] = {}

    def start(self) -> WorkerProcess:
        log = Path(self.plan.ledger).with_suffix(".log")
        process = WorkerProcess(schedule_process.main, self.plan, log)
        self.started.append(process)
        return process

    def replace(self, process: WorkerProcess) -> None:
        process.kill()
        self.started.remove(process)
        self.start()

    def dismiss(self) -> None:
        while self.started:
            self.started.pop().kill()

    # -- jobs -----------------------------------------------------------------------------------

    async def consume(self) -> int:
        """Take away whatever is ready, in every shard; how many jobs that were."""
        runtime = await self.app.runtime()
        number = 0
        for queue in (PLAIN, SPREAD):
            for shard in await runtime.routers.of(queue).names():
                number += await self._take(shard)
        return number

    async def _take(self, shard: str) -> int:
        engine = (await self.app.runtime()).engine
        turn = Turn(self._calls(), 100, self._settled.pop(shard, []))
        answer = await engine.exchange(shard, f"consumer-{shard}", "consumer", turn)
        assert answer.lost == []
        self.jobs.update(claim.id for claim in answer.claimed)
        self._settled[shard] = [
            Settlement(claim.id, claim.lease, Completed()) for claim in answer.claimed
        ]
        return len(answer.claimed)

    async def consume_all(self) -> None:
        while await self.consume():
            pass

    # -- schedules ------------------------------------------------------------------------------

    async def behind(self) -> int:
        """By how much the latest schedule is behind the clock."""
        engine, now = (await self.app.runtime()).engine, self.clock()
        dues = [now]
        for queue in (PLAIN, SPREAD):
            names = [one.name for one in self.app.schedules.declared.values() if one.queue == queue]
            _, found = await read(engine, queue, names)
            if len(found) < len(names):
                return DAY * 99
            dues += [one.due for one in found.values() if one.due is not None]
        return now - min(dues)

    async def is_up_to_date(self) -> bool:
        await self.consume()
        return await self.behind() <= 0

    async def reaches(self, moment: datetime) -> None:
        await eventually(lambda: self.clock() >= us(moment), within=120)

    async def run(self, rng: random.Random, faults: Faults) -> None:
        """Let the month pass."""
        while self.clock() < us(END):
            faults.go_on()
            if await self.behind() < MOST_BEHIND:
                self.clock.set(self.clock() + rng.randint(1, 12) * STEP)
            await self.consume()
        faults.go_on()


def owed(app: Faena, name: str, until: int) -> list[str]:
    """The ids of a schedule's instants in the month, by its terms alone."""
    terms = msgspec.convert(dict(app.schedules.declared[name].base), Terms)
    found: list[str] = []
    instant = terms.following(us(START))
    while instant is not None and instant <= until and len(found) != terms.count:
        found.append(job_id(name, instant))
        instant = terms.following(instant)
    return found


@asynccontextmanager
async def spring(plan: MonthPlan) -> AsyncGenerator[Month]:
    """A month with five schedulers that have declared everything; none is left afterwards."""
    clock = FileClock(plan.clock)
    clock.set(us(START))
    async with open_month(plan, clock) as app:
        month = Month(plan, app, clock)
        try:
            for _ in range(SCHEDULERS):
                month.start()
            await eventually(month.is_up_to_date)
            yield month
        finally:
            month.dismiss()
    clock.close()


class Faults:
    """Kills and freezes at moments of the month, however fast it passes.

    Whoever is killed is replaced; whoever is frozen stays so until the next fault.
    """

    def __init__(self, month: Month, rng: random.Random) -> None:
        kinds = ["killed"] * KILLS + ["frozen"] * FREEZES
        rng.shuffle(kinds)
        moments = sorted(rng.sample(range(us(START), us(END)), len(kinds)))
        self._due = deque(zip(moments, kinds, strict=True))
        self._month = month
        self._rng = rng
        self._frozen: WorkerProcess | None = None
        self.number: Counter[str] = Counter()

    def go_on(self) -> None:
        """Do what is due by the month's clock."""
        while self._due and self._due[0][0] <= self._month.clock():
            self.thaw()
            _, kind = self._due.popleft()
            process = self._rng.choice(self._month.started)
            if kind == "killed":
                self._month.replace(process)
            else:
                process.freeze()
                self._frozen = process
            self.number[kind] += 1

    def thaw(self) -> None:
        if self._frozen is not None:
            self._frozen.thaw()
            self._frozen = None


async def grow(month: Month) -> None:
    """Spread one of the queues, and give a tenant a shard of its own, all through the month."""
    queue = month.app.queues[SPREAD]
    for day, shards in ((5, 2), (12, 3), (20, 4)):
        await month.reaches(START + timedelta(days=day))
        await queue.reshard(shards)
        await queue.tenant("t1").dedicate()
        await month.reaches(START + timedelta(days=day + 3))
        await queue.tenant("t1").rejoin()


async def test_every_instant_of_a_month_is_fired_once(plan: MonthPlan) -> None:
    rng = random.Random(20260301)
    async with spring(plan) as month:
        growing = asyncio.create_task(grow(month))
        faults = Faults(month, rng)
        try:
            await month.run(rng, faults)
            await growing
        finally:
            faults.thaw()
            growing.cancel()
            await asyncio.gather(growing, return_exceptions=True)
        await eventually(month.is_up_to_date)
        until = month.clock()
        month.dismiss()
        month.clock.set(until + DAY)  # what was put off comes too
        await month.consume_all()
        assert faults.number == {"killed": KILLS, "frozen": FREEZES}
        assert len((await month.app.queues[SPREAD].shards()).jobs) == 4
        await judge(month, until)


async def judge(month: Month, until: int) -> None:
    assert {job: times for job, times in month.jobs.items() if times != 1} == {}
    for name, declared in month.app.schedules.declared.items():
        due = owed(month.app, name, until)
        came = {job for job in month.jobs if job.startswith(f"{name}@")}
        assert came <= set(due), name
        if name == "latest":
            assert due[-1] in came
            continue
        assert (await month.app.schedules.get(name)).fired == len(due), name
        if declared.base.get("overlap", "allow") == "allow":
            assert came == set(due), name
    made = Counter(entry.job for entry in Ledger(month.plan.ledger).entries("CREATED"))
    assert set(made.values()) == {1}
    lost = set(made) - set(month.jobs)  # replaced by the next one while they waited
    assert {job.partition("@")[0] for job in lost} <= {"queueing"}
    assert len(made) > 0.9 * len(month.jobs)
