"""A running job that is cancelled from another process really stops, whatever message is lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from faena import Faena, Handle, State
from faena.errors import JobCancelled
from tests._support.eventually import eventually
from tests._support.fault_app import QueuePlan, Work, task_of
from tests._support.valkey import Server
from tests._support.worker_processes import WorkerProcesses

LONG = Work(ms=60_000)


@pytest.fixture
def queues() -> dict[str, QueuePlan]:
    return {"q": QueuePlan(lease="20s"), "brisk": QueuePlan(lease="2s")}


@pytest.mark.parametrize(
    ("name", "exception"), [("work", "CancelledError"), ("grind", "Interrupted")]
)
async def test_a_running_job_stops_when_another_process_cancels_it(
    app: Faena, processes: WorkerProcesses, name: str, exception: str
) -> None:
    (worker,) = processes.start()
    handle = (await task_of(app, name=name).enqueue(LONG)).handle
    waiting = asyncio.create_task(handle.result())
    await eventually(lambda: processes.ledger.jobs("start"))
    assert await handle.cancel() == "asked"
    with pytest.raises(JobCancelled, match="was cancelled"):
        await waiting
    assert await handle.state() is State.CANCELLED
    (stopped,) = processes.ledger.entries("stop")
    assert (stopped.pid, stopped.detail) == (worker.pid, exception)


async def test_a_cancellation_whose_message_is_lost_arrives_with_the_next_renewal(
    app: Faena, processes: WorkerProcesses, server: Server
) -> None:
    (worker,) = processes.start()
    handle = (await task_of(app, "brisk").enqueue(LONG)).handle
    await eventually(lambda: processes.ledger.jobs("start"))
    worker.freeze()
    with server.client() as client:
        client.execute_command("CLIENT", "KILL", "TYPE", "PUBSUB")
        assert client.publish("shop:stop", "nobody hears") == 0
    await handle.cancel()
    worker.thaw()
    await eventually(lambda: processes.ledger.jobs("stop"))
    await eventually(lambda: _is_cancelled(handle))


async def test_a_job_cancelled_while_its_worker_dies_is_not_run_again(
    app: Faena, processes: WorkerProcesses
) -> None:
    (worker,) = processes.start()
    handle = (await task_of(app, "brisk").enqueue(LONG)).handle
    await eventually(lambda: processes.ledger.jobs("start"))
    worker.freeze()
    assert await handle.cancel() == "asked"
    processes.kill(worker)
    processes.start()
    with pytest.raises(JobCancelled):
        await handle.result(timeout="60s")
    assert len(processes.ledger.entries("start")) == 1


async def _is_cancelled(handle: Handle[Any]) -> bool:
    return await handle.state() is State.CANCELLED
