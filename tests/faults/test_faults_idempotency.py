"""Work that is done once, whenever its worker dies: what was charged is counted outside."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from faena import Faena
from faena.task import Handle, Task
from tests._support.charging_app import POINTS, ChargingPlan, main, open_charging_app
from tests._support.eventually import eventually
from tests._support.ledger import Ledger
from tests._support.valkey import Server
from tests._support.worker_processes import WorkerProcess

TWICE = {"charged", "set"}
"""Between the effect and the word of it: nobody can know, so the owner does it again."""


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(tmp_path / "ledger")
    yield ledger
    ledger.close()


class Till:
    """The app from outside, and its workers."""

    def __init__(self, plan: ChargingPlan, ledger: Ledger) -> None:
        self.plan = plan
        self.ledger = ledger
        self.app: Faena
        self.charge: Task[str, str]
        self.app, self.charge = open_charging_app(plan, ledger)
        self.started: list[WorkerProcess] = []

    def start(self) -> WorkerProcess:
        log = self.ledger.path.with_suffix(".log")
        self.started.append(WorkerProcess(main, self.plan, log))
        return self.started[-1]

    async def has_died(self, process: WorkerProcess) -> None:
        await eventually(lambda: not process.is_alive)

    async def is_dead(self, handle: Handle[Any]) -> bool:
        return await handle.state() == "dead"

    @property
    def charged(self) -> int:
        return len(self.ledger.entries("charge"))


@asynccontextmanager
async def opened(server: Server, ledger: Ledger, **options: Any) -> AsyncIterator[Till]:
    charging = Till(ChargingPlan(server.url, str(ledger.path), **options), ledger)
    try:
        yield charging
    finally:
        for process in charging.started:
            with suppress(ProcessLookupError):
                process.kill()
        await charging.app.close()


@pytest.mark.parametrize("point", POINTS)
async def test_a_job_whose_worker_is_killed_is_charged_once_where_that_can_be_known(
    server: Server, ledger: Ledger, point: str
) -> None:
    async with opened(server, ledger, dies_at=point) as charging:
        first = charging.start()
        receipt = await charging.charge.enqueue("o-1")
        await charging.has_died(first)
        charging.start()
        result = await receipt.handle.result("60s")
        assert charging.charged == (2 if point in TWICE else 1)
        assert result == ("paid before" if point == "kept" else "paid")
        # and a repeat, by another job, is answered from the record
        again = await charging.charge.enqueue("o-1")
        assert await again.handle.result("60s") == "paid before"
        assert charging.charged == (2 if point in TWICE else 1)


@pytest.mark.parametrize("point", POINTS)
async def test_a_job_that_died_with_its_worker_goes_on_when_the_desk_retries_it(
    server: Server, ledger: Ledger, point: str
) -> None:
    async with opened(server, ledger, dies_at=point, deliveries=1) as charging:
        first = charging.start()
        receipt = await charging.charge.enqueue("o-1")
        await charging.has_died(first)
        charging.start()
        await eventually(lambda: charging.is_dead(receipt.handle))
        retried = await charging.app.dead_letters.retry_as_new("charging", receipt.id)
        result = await charging.charge.handle(retried).result("60s")
        assert result == ("paid before" if point == "kept" else "paid")
        assert charging.charged == (2 if point in TWICE else 1)
        assert ledger.jobs("start")[retried] == 1  # it was not put off: the work is its line's


async def test_a_job_that_failed_after_its_work_does_not_do_it_again_at_the_desk(
    server: Server, ledger: Ledger
) -> None:
    async with opened(server, ledger, fails=True) as charging:
        charging.start()
        receipt = await charging.charge.enqueue("o-1")
        await eventually(lambda: charging.is_dead(receipt.handle))
        retried = await charging.app.dead_letters.retry_as_new("charging", receipt.id)
        assert await charging.charge.handle(retried).result("60s") == "paid before"
        assert charging.charged == 1
