"""A server of the test's own, and workers to be killed.

A file whose queues or server are others names its own `queues` or `server`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from faena import Faena
from tests._support.fault_app import Plan, QueuePlan, open_app
from tests._support.lane_app import QUEUE, LanePlan
from tests._support.valkey import Server
from tests._support.worker_processes import WorkerProcesses


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(unix=True) as server:
        yield server


@pytest.fixture
def queues() -> dict[str, QueuePlan]:
    return {"q": QueuePlan()}


@pytest.fixture
def processes(
    server: Server, queues: dict[str, QueuePlan], tmp_path: Path
) -> Iterator[WorkerProcesses]:
    plan = Plan(url=server.url, ledger=str(tmp_path / "ledger"), queues=queues)
    with WorkerProcesses(plan) as processes:
        yield processes


@pytest.fixture
async def app(processes: WorkerProcesses) -> AsyncIterator[Faena]:
    async with open_app(processes.plan, processes.ledger) as app:
        yield app


@pytest.fixture
def lane_plan_for(server: Server, tmp_path: Path) -> Callable[..., LanePlan]:
    def plan(queue: QueuePlan | None = None, **options: Any) -> LanePlan:
        queues = {QUEUE: queue or QueuePlan()}
        return LanePlan(url=server.url, ledger=str(tmp_path / "ledger"), queues=queues, **options)

    return plan
