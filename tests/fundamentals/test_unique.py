"""The same work, asked for twice."""

from __future__ import annotations

import asyncio

import pytest

from faena import Faena, IdempotencyKey, Job, Unique
from faena.errors import JobConflict
from faena.testing import Harness


async def test_the_same_id_is_the_same_job(app: Faena, h: Harness) -> None:
    @app.queue("bills").task
    async def bill(cents: int) -> None: ...

    first = await bill.enqueue(100, id="invoice-9")
    again = await bill.enqueue(100, id="invoice-9")
    assert (first.status, again.status, again.state) == ("created", "duplicate", "ready")
    with pytest.raises(JobConflict, match="invoice-9 exists with another task, payload"):
        await bill.enqueue(200, id="invoice-9")
    await h.assert_enqueued(bill, count=1)


async def test_a_unique_key_lives_as_long_as_its_job(app: Faena, h: Harness) -> None:
    @app.queue("sync").task
    async def sync(account: str) -> None: ...

    first = await sync.enqueue("ana", unique="ana")
    assert (await sync.enqueue("ana", unique="ana")).id == first.id
    await h.drain()
    assert (await sync.enqueue("ana", unique="ana")).status == "created"


async def test_throttle_takes_one_job_in_a_while(app: Faena, h: Harness) -> None:
    @app.queue("sync").task
    async def sync() -> None: ...

    once = Unique.throttle("ana", "10m")
    assert (await sync.enqueue(unique=once)).status == "created"
    await h.drain()
    assert (await sync.enqueue(unique=once)).status == "duplicate"
    h.clock.advance("10m")
    assert (await sync.enqueue(unique=once)).status == "created"


async def test_debounce_runs_once_after_the_last_call(app: Faena, h: Harness) -> None:
    @app.queue("index").task
    async def index(version: int) -> int:
        return version

    for version in (1, 2, 3):
        await index.enqueue(version, unique=Unique.debounce("page", "30s"))
        h.clock.advance("20s")
    assert len(await h.drain()) == 0
    h.clock.advance("10s")
    assert [ran.result for ran in await h.drain()] == [3]


async def test_keep_last_lets_one_wait_behind_the_one_that_runs(app: Faena, h: Harness) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    @app.queue("index").task
    async def index(version: int) -> int:
        begun.set()
        await go_on.wait()
        return version

    latest = Unique.keep_last("page")
    await index.enqueue(1, unique=latest)
    draining = asyncio.create_task(h.drain())
    await begun.wait()
    await index.enqueue(2, unique=latest)
    third = await index.enqueue(3, unique=latest)
    assert third.replaced is not None
    go_on.set()
    assert [ran.result for ran in await draining] == [1, 3]


async def test_a_handler_that_may_run_twice_does_its_work_once(app: Faena, h: Harness) -> None:
    charged: list[int] = []
    bills = app.queue("bills")

    @bills.task
    async def charge(cents: int, job: Job) -> str:
        key = IdempotencyKey("org-1", "invoice", "9", "charge")
        async with bills.idempotency.once(key, job) as record:
            if record.is_done:
                return f"{record.result} before"
            charged.append(cents)
            record.result = "charged"
        return record.result

    await charge.enqueue(100)
    await charge.enqueue(100)
    assert [ran.result for ran in await h.drain()] == ["charged", "charged before"]
    assert charged == [100]
