"""A broker at its maxmemory refuses new jobs and still ends the ones it has."""

from __future__ import annotations

import pytest

from faena import Faena
from faena.errors import StoreRejected
from tests._support.eventually import eventually
from tests._support.fault_app import (
    QueuePlan,
    Work,
    all_completed,
    enqueue,
    task_of,
)
from tests._support.valkey import Server
from tests._support.worker_processes import WorkerProcesses

ROOM = 4_000_000
BALLAST = "x" * 200_000


@pytest.fixture
def queues() -> dict[str, QueuePlan]:
    return {"q": QueuePlan(lease="10s"), "ballast": QueuePlan()}


async def test_a_full_broker_refuses_new_jobs_and_ends_the_ones_it_has(
    app: Faena, processes: WorkerProcesses, server: Server
) -> None:
    processes.start()
    accepted = await enqueue(app, [Work(ms=500, note="running") for _ in range(10)])
    accepted |= await enqueue(app, [Work(ms=1, fails=i % 2) for i in range(200)])
    accepted |= await enqueue(app, [Work() for _ in range(20)], delay="300ms")
    await eventually(lambda: len(processes.ledger.jobs("start")) == 10)
    await _fill(app, server)
    with pytest.raises(StoreRejected, match=r"refused the call: .* maxmemory"):
        await task_of(app).enqueue(Work())

    await all_completed(app, accepted)
    assert "refused" not in processes.log()
    assert {one.losses for one in processes.ledger.entries("start")} == {0}
    assert processes.ledger.unexplained() == []
    with pytest.raises(StoreRejected):
        await task_of(app).enqueue(Work())

    await app.queues["ballast"].drain()
    more = await enqueue(app, [Work() for _ in range(50)])
    await all_completed(app, accepted | more)


async def test_a_full_broker_still_cancels_changes_and_answers_waiters(
    app: Faena, processes: WorkerProcesses, server: Server
) -> None:
    processes.start()
    running = (await task_of(app).enqueue(Work(ms=60_000))).handle
    delayed = (await task_of(app).enqueue(Work(), delay="1h")).handle
    doomed = (await task_of(app).enqueue(Work(), delay="1h")).handle
    await eventually(lambda: processes.ledger.jobs("start"))
    await _fill(app, server)
    assert await doomed.cancel() == "cancelled"
    await delayed.promote()
    assert await delayed.result(timeout="60s") == "1/0"
    assert await running.cancel() == "asked"
    await eventually(lambda: processes.ledger.jobs("stop"))


async def test_a_full_broker_that_lost_its_functions_is_worked_empty(
    app: Faena, processes: WorkerProcesses, server: Server
) -> None:
    """As when a new version of the program, with a new library, meets a full broker."""
    accepted = await enqueue(app, [Work(ms=1, fails=i % 2) for i in range(100)])
    await _fill(app, server)
    with server.client() as client:
        client.function_flush()
        processes.start()
        await all_completed(app, accepted)
        assert client.function_list() == []
    assert processes.ledger.unexplained() == []


async def _pile_up(app: Faena) -> None:
    for _ in range(1000):
        await enqueue(app, [Work(note=BALLAST)], queue="ballast", delay="1h")


async def _fill(app: Faena, server: Server) -> None:
    """Put ballast on a queue of its own until the server takes no more, then halve its limit."""
    with server.client() as client:
        used = int(client.info("memory")["used_memory"])
        client.config_set("maxmemory", used + ROOM)
        with pytest.raises(StoreRejected):
            await _pile_up(app)
        client.config_set("maxmemory", used + ROOM // 2)
