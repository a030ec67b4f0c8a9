"""Workers of flows and groups are killed and frozen: all ends, and nothing comes twice."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from faena import Faena
from tests._support.eventually import eventually
from tests._support.fault_app import Plan, QueuePlan, Work, open_app, task_of
from tests._support.search import IS_FULL
from tests._support.valkey import Server
from tests._support.worker_processes import WorkerProcesses

LAYERS, WIDTH = (10, 100) if IS_FULL else (6, 25)
MEMBERS = 100_000 if IS_FULL else 3_000


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(unix=True) as server:
        yield server


@pytest.fixture
def processes(server: Server, tmp_path: Path) -> Iterator[WorkerProcesses]:
    queues = {name: QueuePlan(kept=0, concurrency=25) for name in ("q", "r")}
    with WorkerProcesses(
        Plan(url=server.url, ledger=str(tmp_path / "ledger"), queues=queues)
    ) as processes:
        yield processes


@pytest.fixture
async def app(processes: WorkerProcesses) -> AsyncIterator[Faena]:
    async with open_app(processes.plan, processes.ledger) as app:
        yield app


@asynccontextmanager
async def harm(processes: WorkerProcesses) -> AsyncIterator[list[int]]:
    """Kill a worker now and then, and freeze another for longer than its leases."""
    killed: list[int] = []

    async def go_on() -> None:
        while True:
            alive = [process for process in processes.started if process.is_alive]
            victim, sleeper = random.sample(alive, 2)
            sleeper.freeze()
            killed.append(processes.kill(victim))
            processes.start()
            await asyncio.sleep(random.uniform(0.1, 2.6))
            sleeper.thaw()
            await asyncio.sleep(random.uniform(0.1, 0.6))

    harming = asyncio.create_task(go_on())
    try:
        yield killed
    finally:
        harming.cancel()
        await asyncio.gather(harming, return_exceptions=True)
        for process in processes.started:
            if process.is_alive:
                process.thaw()


async def test_a_flow_ends_and_none_of_its_jobs_comes_twice(
    app: Faena, processes: WorkerProcesses
) -> None:
    processes.start(3)
    await eventually(processes.are_up)
    chance = random.Random(7)
    plan = app.flow("layers")
    before: list[str] = []
    parents: dict[str, list[str]] = {}
    for layer in range(LAYERS):
        row = [f"{layer}-{at}" for at in range(WIDTH)]
        for name in row:
            task = task_of(app, chance.choice("qr"))
            parents[name] = chance.sample(before, k=min(len(before), chance.randint(1, 3)))
            plan.add(task.draft(Work(ms=chance.randint(20, 90))), name=name, after=parents[name])
        before = row
    plan.add(task_of(app, "r").draft(Work(note="last")), name="last", after=before)
    parents["last"] = before
    async with harm(processes) as killed:
        flow = await plan.start()
        view = await flow.wait("20m" if IS_FULL else "120s")
    assert view.state == "completed"
    assert killed
    assert processes.ledger.unexplained() == []
    jobs = {node.name: node.job for node in view.nodes}
    assert set(processes.ledger.jobs("start")) == set(jobs.values())
    first_start: dict[str, int] = {}
    first_finish: dict[str, int] = {}
    for entry in processes.ledger.entries("start"):
        first_start.setdefault(entry.job, entry.at_ns)
    for entry in processes.ledger.entries("finish"):
        first_finish.setdefault(entry.job, entry.at_ns)
    for name, above in parents.items():
        for parent in above:
            assert first_finish[jobs[parent]] <= first_start[jobs[name]]


async def test_a_group_counts_every_member_and_calls_back_once(
    app: Faena, processes: WorkerProcesses
) -> None:
    processes.start(3)
    await eventually(processes.are_up)
    group = app.group(
        on_complete=task_of(app, "r").draft(Work(note="complete")),
        on_success=task_of(app, "r").draft(Work(note="success")),
    )
    async with harm(processes) as killed:
        async with group:
            for queue in ("q", "r"):
                works = [Work(ms=5 + at % 20) for at in range(MEMBERS // 2)]
                await group.enqueue_many(task_of(app, queue), works)
        await group.wait("20m" if IS_FULL else "120s")

        async def are_called() -> bool:
            view = await group.view()
            return set(view.callbacks.values()) == {"completed"}

        await eventually(are_called)
    view = await group.view()
    assert (view.total, view.completed) == (MEMBERS, MEMBERS)
    assert killed
    assert processes.ledger.unexplained() == []
    started = processes.ledger.jobs("start")
    assert len(started) == MEMBERS + 2
    name = group.id.replace("/", ".")
    assert {f"{name}.complete", f"{name}.success"} <= set(started)
