"""Producers whose replies are lost, who are cancelled, or who meet a full or a dying broker."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from faena import Faena
from faena.errors import JobConflict, StoreUnavailable
from tests._support.eventually import eventually
from tests._support.fault_app import (
    Plan,
    QueuePlan,
    Work,
    all_completed,
    enqueue,
    open_app,
    task_of,
)
from tests._support.lossy_proxy import LossyProxy
from tests._support.proxy import Proxy
from tests._support.valkey import Server
from tests._support.worker_processes import WorkerProcesses


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


async def test_an_id_is_one_job_whoever_sends_it_and_whatever_replies_are_lost(
    app: Faena, processes: WorkerProcesses, server: Server
) -> None:
    ids = [f"order-{number}" for number in range(20)]
    async with LossyProxy(server.port, lambda request: b"order-" in request) as proxy:
        plan = msgspec.structs.replace(processes.plan, url=proxy.url)
        callers = [open_app(plan, processes.ledger) for _ in range(16)]
        statuses = await asyncio.gather(*(_send_all(caller, ids) for caller in callers))
        await asyncio.gather(*(caller.close() for caller in callers))
        assert proxy.lost >= 16
    created = Counter(job for told in statuses for job, status in told if status == "created")
    assert created == Counter(ids)
    assert Counter(status for told in statuses for _, status in told) == {
        "created": 20,
        "duplicate": 15 * 20,
    }
    with pytest.raises(JobConflict, match="order-3 exists with another task, payload"):
        await task_of(app).enqueue(Work(ms=999), id="order-3")
    processes.start()
    await all_completed(app, set(ids))
    assert processes.ledger.jobs("start") == Counter(ids)


async def test_jobs_without_an_id_of_their_own_are_not_doubled_by_lost_replies(
    app: Faena, processes: WorkerProcesses, server: Server
) -> None:
    async with LossyProxy(server.port, lambda request: b"FCALL" in request) as proxy:
        lossy = open_app(msgspec.structs.replace(processes.plan, url=proxy.url), processes.ledger)
        accepted = await enqueue(lossy, [Work() for _ in range(100)])
        accepted |= {(await task_of(lossy).enqueue(Work())).id for _ in range(20)}
        assert proxy.lost >= 21
        await lossy.close()
    assert (await app.queues["q"].counts())["ready"] == 120 == len(accepted)


async def test_workers_whose_replies_are_lost_neither_strand_nor_repeat_a_job(
    server: Server, tmp_path: Path
) -> None:
    plan = Plan(
        url=server.url,
        ledger=str(tmp_path / "ledger"),
        queues={"q": QueuePlan(lease="20s", concurrency=30)},
    )
    async with LossyProxy(server.port, lambda request: b"FCALL" in request) as proxy:
        with WorkerProcesses(msgspec.structs.replace(plan, url=proxy.url)) as processes:
            async with open_app(plan, processes.ledger) as app:
                accepted = await enqueue(app, [Work(fails=i % 2) for i in range(200)])
                processes.start()
                await all_completed(app, accepted)
                assert processes.ledger.unexplained() == []
                assert {one.losses for one in processes.ledger.entries("start")} == {0}
        assert proxy.lost > 10


async def test_a_cancelled_enqueue_takes_no_other_with_it(app: Faena) -> None:
    await enqueue(app, [Work()])
    calls = [asyncio.create_task(task_of(app).enqueue(Work(), id=f"j{i}")) for i in range(300)]
    await asyncio.sleep(0)
    for call in calls[::3]:
        call.cancel()
    ended = await asyncio.gather(*calls, return_exceptions=True)
    kept = {f"j{i}" for i in range(300) if i % 3}
    assert {receipt.id for receipt in ended if not isinstance(receipt, BaseException)} == kept
    engine = (await app.runtime()).engine
    assert all(await engine.look("q", sorted(kept)))
    assert (await task_of(app).enqueue(Work(), id="after")).status == "created"


async def test_enqueues_still_waiting_when_the_app_is_closed_are_told(
    processes: WorkerProcesses, server: Server
) -> None:
    async with Proxy(server.port) as proxy:
        app = open_app(msgspec.structs.replace(processes.plan, url=proxy.url), processes.ledger)
        await enqueue(app, [Work()])
        proxy.freeze()
        calls = [asyncio.create_task(task_of(app).enqueue(Work())) for _ in range(5)]
        await eventually(proxy.swallowed)
        await app.close()
        ended = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(error) for error in ended} == {StoreUnavailable}


async def _send_all(app: Faena, ids: list[str]) -> list[tuple[str, str]]:
    receipts = await asyncio.gather(*(task_of(app).enqueue(Work(ms=1), id=job) for job in ids))
    return [(receipt.id, receipt.status) for receipt in receipts]
