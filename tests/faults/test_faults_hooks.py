"""Workers that are killed: each death has its hook, once, whoever decided it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from faena import Faena
from faena.states import State
from tests._support.eventually import eventually
from tests._support.fault_app import QueuePlan, Work, enqueue
from tests._support.worker_processes import WorkerProcesses


@pytest.fixture
def queues() -> dict[str, QueuePlan]:
    return {"q": QueuePlan(attempts=2, retry_wait="20ms", max_deliveries=2, is_hooked=True)}


async def test_each_death_has_one_hook_while_workers_are_killed_over_and_over(
    app: Faena, processes: WorkerProcesses
) -> None:
    processes.start(2)
    await eventually(processes.are_up)
    accepted = await enqueue(app, [Work(ms=20, fails=9) for _ in range(120)])
    await processes.lose(40, 80, 120, 160)

    async def is_over() -> bool:
        counts = await app.queues["q"].counts()
        return counts["dead"] >= len(accepted) and not sum(
            counts[state] for state in ("ready", "running", "delayed")
        )

    await eventually(is_over)
    told, deaths = await _hooks(app), await _jobs(app, State.DEAD)
    dead = {view.id for view in deaths if view.task == "work"}
    assert dead == accepted
    assert told == Counter(accepted)  # those whose delivery was lost too often among them


async def _hooks(app: Faena) -> Counter[str]:
    """Of which jobs hooks tell, whatever became of the hooks."""
    views = [*await _jobs(app, State.COMPLETED), *await _jobs(app, State.DEAD)]
    hooks = [view for view in views if view.task == "work.on_dead"]
    return Counter(msgspec.json.decode(view.payload)["job_id"] for view in hooks)


async def _jobs(app: Faena, state: State) -> list[Any]:
    return list((await app.queues["q"].jobs(state, limit=1000)).jobs)
