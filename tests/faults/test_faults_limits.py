"""Limits and slots while their holders are killed: never exceeded, never leaked, nobody starves."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from faena import Faena
from tests._support.chain_order import fewest_us
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
from tests._support.valkey import Server
from tests._support.worker_processes import WorkerProcesses

LEASE_S = 2.0
SWEEP_S = 5.0


@pytest.fixture
def plan_for(server: Server, tmp_path: Path) -> Callable[..., Plan]:
    def plan(*, concurrency: int | None = None, **queues: QueuePlan) -> Plan:
        ledger = str(tmp_path / "ledger")
        return Plan(url=server.url, ledger=ledger, queues=queues, concurrency=concurrency)

    return plan


async def test_no_window_of_a_limit_is_exceeded_while_workers_are_killed(
    plan_for: Callable[..., Plan],
) -> None:
    async with _processes(plan_for(q=QueuePlan(limits=["20/300ms", "50/1s"]))) as (processes, app):
        processes.start(2)
        accepted = await enqueue(app, [Work(ms=20) for _ in range(200)])
        await processes.lose(30, 60, 90, kind="claim")
        await all_completed(app, accepted)
        claimed = sorted(int(one.detail) for one in processes.ledger.entries("claim"))
    assert len(claimed) >= 200
    assert fewest_us(claimed, 20) >= 300_000
    assert fewest_us(claimed, 50) >= 1_000_000
    assert claimed[-1] - claimed[0] <= 60_000_000


async def test_no_window_of_a_limit_by_cost_is_exceeded_while_workers_are_killed(
    plan_for: Callable[..., Plan],
) -> None:
    """Every second job says that it used less than its estimate, which others may use then."""
    async with _processes(plan_for(q=QueuePlan(costs=["400/500ms"]))) as (processes, app):
        processes.start(2)
        task, costs = task_of(app), dict[str, int]()
        for number in range(120):
            tokens, is_said = 10 + number % 30, number % 2
            work = Work(ms=20, tokens=tokens // 2 if is_said else None)
            receipt = await task.enqueue(work, cost={"tokens": tokens})
            costs[receipt.id] = tokens // 2 if is_said else tokens
        await processes.lose(20, 45, 70, kind="claim")
        await all_completed(app, {*costs})
        claimed = [(int(one.detail), costs[one.job]) for one in processes.ledger.entries("claim")]
    assert len(claimed) >= 120
    for start, _ in claimed:
        assert sum(cost for at, cost in claimed if start <= at < start + 500_000) <= 400


async def test_a_limit_is_used_up_as_soon_as_it_opens(plan_for: Callable[..., Plan]) -> None:
    plan = plan_for(q=QueuePlan(limits=["5/200ms"], concurrency=50, lease="20s"))
    async with _processes(plan) as (processes, app):
        processes.start()
        await all_completed(app, await enqueue(app, [Work() for _ in range(60)]))
        claimed = [int(one.detail) for one in processes.ledger.entries("claim")]
    # eleven windows of 200 ms; a worker that only came by at its sweeps would take 55 s
    assert max(claimed) - min(claimed) <= 30_000_000


async def test_jobs_running_at_once_never_exceed_the_maximum_while_workers_are_killed(
    plan_for: Callable[..., Plan],
) -> None:
    async with _processes(plan_for(q=QueuePlan(max_running=5))) as (processes, app):
        processes.start(2)
        accepted = await enqueue(app, [Work(ms=30) for _ in range(150)])
        await processes.lose(20, 50, 80)
        await all_completed(app, accepted)
        assert processes.ledger.most_at_once() == 5
        assert processes.ledger.unexplained() == []


async def test_the_places_of_two_hundred_killed_holders_are_free_again_in_time(
    plan_for: Callable[..., Plan],
) -> None:
    plan = plan_for(q=QueuePlan(max_running=200, concurrency=200, limits=["1000/s"]))
    async with _processes(plan) as (processes, app):
        (holder,) = processes.start()
        await enqueue(app, [Work(ms=60_000) for _ in range(300)])
        await eventually(lambda: len(processes.ledger.jobs("start")) == 200)
        processes.start()
        await eventually(processes.are_up)
        killed_ns = processes.kill(holder)
        await eventually(lambda: len(processes.ledger.jobs("start", since_ns=killed_ns)) == 200)
        last_ns = max(one.at_ns for one in processes.ledger.entries("start"))
        assert (last_ns - killed_ns) / 1e9 <= LEASE_S + SWEEP_S + 30
        assert processes.ledger.most_at_once() == 200


async def test_no_queue_starves_where_there_are_fewer_slots_than_queues(
    plan_for: Callable[..., Plan],
) -> None:
    names = [f"q{number}" for number in range(6)]
    queues = {name: QueuePlan(lease="20s") for name in ["flood", *names]}
    async with _processes(plan_for(concurrency=2, **queues)) as (processes, app):
        processes.start()
        await enqueue(app, [Work(ms=10) for _ in range(800)], queue="flood")
        await eventually(lambda: len(processes.ledger.jobs("start")) > 20)
        owners: dict[str, str] = {}
        for name in names:
            jobs = await enqueue(app, [Work(ms=10) for _ in range(20)], queue=name)
            owners |= dict.fromkeys(jobs, name)
        done: Counter[str] = Counter()

        def everyone_had_some() -> bool:
            done.clear()
            done.update(owners.get(one.job, "flood") for one in processes.ledger.entries("finish"))
            return all(done[name] >= 5 for name in names)

        await eventually(everyone_had_some)
        assert done["flood"] < 800
        assert max(done[name] for name in names) <= 20


@asynccontextmanager
async def _processes(plan: Plan) -> AsyncIterator[tuple[WorkerProcesses, Faena]]:
    with WorkerProcesses(plan) as processes:
        async with open_app(plan, processes.ledger) as app:
            yield processes, app
