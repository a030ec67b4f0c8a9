"""Workers that die, freeze and leave in the middle of a batch: each job is safe by itself."""

from __future__ import annotations

from collections import Counter

from faena import Faena
from tests._support.eventually import eventually
from tests._support.fault_app import Work, all_completed, enqueue, task_of
from tests._support.worker_processes import WorkerProcess, WorkerProcesses


async def test_a_worker_killed_in_mid_batch_loses_nothing_and_every_job_runs_again(
    app: Faena, processes: WorkerProcesses
) -> None:
    victim, accepted = await _in_mid_batch(app, processes, 1500)
    processes.kill(victim)
    assert processes.ledger.jobs("finish") == {}
    processes.start()
    await all_completed(app, accepted)
    assert processes.ledger.jobs("start") == Counter(dict.fromkeys(accepted, 2))
    assert processes.ledger.jobs("finish") == Counter(accepted)
    assert processes.ledger.unexplained() == []
    assert set(await _results(app, accepted)) == {b'"1/1"'}


async def test_a_worker_killed_while_jobs_wait_for_others_has_called_nothing(
    app: Faena, processes: WorkerProcesses
) -> None:
    """The batch of three waits for two more when its worker dies, and is another's afterwards."""
    (victim,) = processes.start()
    await eventually(processes.are_up)
    victim.freeze()
    accepted = await enqueue(app, [Work() for _ in range(3)], name="pack")
    victim.thaw()
    await eventually(lambda: len(processes.ledger.entries("claim")) == 3)
    processes.kill(victim)
    processes.start()
    await all_completed(app, accepted)
    assert processes.ledger.jobs("finish") >= Counter(accepted)
    assert processes.ledger.unexplained() == []


async def test_batches_finish_while_workers_are_killed_over_and_over(
    app: Faena, processes: WorkerProcesses
) -> None:
    accepted = await _begun(app, processes, 600)
    for _ in range(4):
        await _more(processes, "start")
        processes.replace()
    await all_completed(app, accepted)
    assert set(processes.ledger.jobs("finish")) == accepted
    assert processes.ledger.unexplained() == []
    lost = Counter(await _results(app, accepted))
    assert lost[b'"1/0"'] >= len(accepted) - 4 * 10, "a worker loses no more than its slots"


async def test_a_batch_of_a_frozen_worker_is_settled_by_another_alone(
    app: Faena, processes: WorkerProcesses
) -> None:
    frozen, accepted = await _in_mid_batch(app, processes, 3000)
    frozen.freeze()
    processes.start()
    await eventually(lambda: len(processes.ledger.entries("start")) == 20)
    frozen.thaw()
    await all_completed(app, accepted)
    assert set(await _results(app, accepted)) == {b'"1/1"'}
    assert processes.ledger.unexplained() == []
    assert frozen.is_alive


async def test_rolling_restarts_spend_and_repeat_nothing(
    app: Faena, processes: WorkerProcesses
) -> None:
    accepted = await _begun(app, processes, 500)
    for _ in range(3):
        await _more(processes, "finish")
        leaving = processes.started[-2]
        processes.start()
        leaving.terminate()
        assert await leaving.ended() == 0
    await all_completed(app, accepted)
    assert processes.ledger.jobs("start") == Counter(accepted)
    assert set(await _results(app, accepted)) == {b'"1/0"'}


async def _in_mid_batch(
    app: Faena, processes: WorkerProcesses, ms: int
) -> tuple[WorkerProcess, set[str]]:
    """A worker that has begun a batch of ten jobs, and those."""
    (worker,) = processes.start()
    accepted = await enqueue(app, [Work(ms=ms) for _ in range(10)], name="pack")
    await eventually(lambda: set(processes.ledger.jobs("start")) == accepted)
    return worker, accepted


async def _begun(app: Faena, processes: WorkerProcesses, number: int) -> set[str]:
    """Two workers are up and have so many short jobs to do."""
    processes.start(2)
    await eventually(processes.are_up)
    return await enqueue(app, [Work(ms=20) for _ in range(number)], name="pack")


async def _results(app: Faena, accepted: set[str]) -> list[bytes | None]:
    views = [await task_of(app, name="pack").handle(job).view() for job in accepted]
    return [view.result for view in views]


async def _more(processes: WorkerProcesses, kind: str) -> None:
    """Thirty more entries of a kind."""
    before = len(processes.ledger.entries(kind))
    await eventually(lambda: len(processes.ledger.entries(kind)) >= before + 30)
