"""Five processes judge alerts and are killed at every step: each change is told exactly once."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faena import Faena
from tests._support.alert_process import (
    BOUND,
    QUEUES,
    STEPS,
    AlertPlan,
    main,
    open_watched,
)
from tests._support.eventually import PATIENCE_S, eventually
from tests._support.forked import Forked
from tests._support.ledger import Ledger
from tests._support.notice_receiver import NoticeReceiver, Request
from tests._support.rig import SECOND, T0
from tests._support.schedule_process import FileClock
from tests._support.search import IS_FULL, SEED
from tests._support.valkey import Server

EVALUATORS = 5
ROUNDS = 100 if IS_FULL else 12
DELIVERED_EACH = 4
STEP_S = 0.02


class Evaluators:
    """Processes that are replaced as they die."""

    def __init__(self, plan: AlertPlan, clock: FileClock, log: Path) -> None:
        self._plan, self._clock, self._log = plan, clock, log
        self._running: list[Forked] = []
        self._dice, self._steps = random.Random(SEED), itertools.cycle(STEPS)
        self._now = T0

    async def step(self) -> None:
        """The clock moves on, the dead are replaced, and now and then one more is killed."""
        for one in [one for one in self._running if one.code is not None]:
            self._running.remove(one)
        while len(self._running) < EVALUATORS:
            fatal = next(self._steps)
            self._running.append(Forked(main, self._plan, fatal, log=self._log))
        if self._dice.random() < 0.02:
            await asyncio.to_thread(self._dice.choice(self._running).kill)
        self._now += SECOND
        self._clock.set(self._now)
        await asyncio.sleep(STEP_S)

    def kill(self) -> None:
        for one in self._running:
            one.kill()


@contextmanager
def evaluators(plan: AlertPlan, clock: FileClock, log: Path) -> Iterator[Evaluators]:
    clock.set(T0)
    started = Evaluators(plan, clock, log)
    try:
        yield started
    finally:
        started.kill()


async def test_each_change_is_told_once_whoever_is_killed(server: Server, tmp_path: Path) -> None:
    clock = FileClock(tmp_path / "clock")
    async with NoticeReceiver() as hook:
        ledger = str(tmp_path / "ledger")
        plan = AlertPlan(server.url, ledger, str(tmp_path / "clock"), hook.url)
        async with open_watched(plan, clock) as app:
            with evaluators(plan, clock, tmp_path / "log") as running:
                for number in range(ROUNDS):
                    await fill(app)
                    await judged(app, running, len(QUEUES))
                    await empty(app)
                    await judged(app, running, 0)
                    if number % DELIVERED_EACH == 0:
                        await deliver(app)
                await all_have_died(ledger, running)
                await all_are_jobs(app, running)
            await deliver(app)
    clock.close()
    assert {*Ledger(ledger).jobs("died")} == {*STEPS}
    told = [(one["subject"], one["change"]) for each in hook.requests for one in alerts_in(each)]
    assert Counter(told) == {
        (queue, change): ROUNDS for queue in QUEUES for change in ("firing", "resolved")
    }
    ids = [each.headers["Faena-Notice"] for each in hook.requests]
    assert len(ids) == len({*ids})
    for queue in QUEUES:
        changes = [change for subject, change in told if subject == queue]
        assert changes == ["firing", "resolved"] * ROUNDS


def alerts_in(request: Request) -> list[dict[str, str]]:
    return list(request.document["alerts"])


async def fill(app: Faena) -> None:
    for name in QUEUES:
        for _ in range(BOUND):
            await app.queues[name].tasks[f"{name}.work"].enqueue()


async def empty(app: Faena) -> None:
    for name in QUEUES:
        await app.queues[name].drain(by="test")


async def judged(app: Faena, running: Evaluators, firing: int) -> None:
    """So many alerts fire."""
    async with asyncio.timeout(PATIENCE_S):
        while len((await app.alerts(history=0)).firing) != firing:
            await running.step()


async def all_have_died(ledger: str, running: Evaluators) -> None:
    """At each step at which nothing need change."""
    rare = {one for one in STEPS if "begin" in one or "evaluate" in one}
    async with asyncio.timeout(PATIENCE_S):
        while not rare <= {*Ledger(ledger).jobs("died")}:
            await running.step()


async def all_are_jobs(app: Faena, running: Evaluators) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await app.alerts(history=0)).undelivered:
            await running.step()


async def deliver(app: Faena) -> None:
    """Only notices are served, by one process that is not killed, while the clock stands still."""
    worker = await app.worker(["alerts"])
    serving = asyncio.create_task(worker.run())

    async def is_done() -> bool:
        counts = await app.queues["alerts"].counts()
        return not any(number for state, number in counts.items() if state != "completed")

    await eventually(is_done)
    worker.stop()
    await serving
