"""What was counted agrees with what happened, however many workers are killed."""

from __future__ import annotations

import asyncio

from faena import Faena
from tests._support.eventually import eventually
from tests._support.fault_app import Work, all_completed, enqueue
from tests._support.worker_processes import WorkerProcesses

JOBS = 400


async def test_totals_and_minutes_agree_with_the_ledger_after_kills(
    app: Faena, processes: WorkerProcesses
) -> None:
    processes.start(2)
    await eventually(processes.are_up)
    jobs = await enqueue(app, [Work(ms=20, fails=int(number % 10 == 0)) for number in range(JOBS)])
    totals: list[dict[str, int]] = []
    for part in range(1, 5):
        enough = part * JOBS // 8
        await eventually(lambda enough=enough: len(processes.ledger.jobs("finish")) >= enough)
        processes.kill(processes.started[-1])
        processes.start()
        totals.append(await totals_of(app))
    await all_completed(app, jobs)
    found = await totals_of(app)
    for before, after in zip(totals, [*totals[1:], found], strict=True):
        assert all(after[name] >= number for name, number in before.items())
    starts = len(processes.ledger.entries("start"))
    assert (found["enqueued"], found["completed"]) == (JOBS, JOBS)
    assert found["retried"] == JOBS // 10
    assert found["rescued"] > 0
    assert found["claimed"] == JOBS + found["retried"] + found["rescued"]
    assert found["claimed"] >= starts
    counted = (await app.queues["q"].statistics("1h")).counters
    assert counted == found


async def totals_of(app: Faena) -> dict[str, int]:
    async with asyncio.timeout(60):
        snapshot = await app.snapshot(max_age="0s")
    (queue,) = [one for one in snapshot.queues if one.queue == "q"]
    return queue.totals
