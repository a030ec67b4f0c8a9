"""Jobs of batches that are told to stop: while they wait for others, and while the call runs."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import time
from typing import Any

import pytest

from faena import Faena, Job, Middleware, Retry, State
from faena.errors import JobCancelled, JobFailed, JobTimedOut
from faena.middleware import Execute
from faena.worker.execute import time_limits
from faena.worker.execute.attempt_state import Stop
from faena.worker.worker import Worker
from tests._support.batch_queue import QUICK, BatchQueue, results, working
from tests._support.eventually import eventually
from tests._support.valkey import Server


class Gate:
    """Handlers wait here until the test lets them go, and write down how they left."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()
        self.stopped = 0

    async def pass_through(self, items: list[Any], jobs: list[Job]) -> list[Any]:
        self.entered.set()
        try:
            await self.opened.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        return [ValueError("skipped") if job.cancelled else job.attempt for job in jobs]


@pytest.fixture
def gate() -> Gate:
    return Gate()


async def until_it_has(worker: Worker, number: int) -> None:
    """Wait until so many jobs are the worker's, and it knows."""
    await eventually(lambda: worker.running == number)


# -- while they wait ------------------------------------------------------------------------------


async def test_a_job_that_is_cancelled_while_it_waits_is_left_out(app: Faena) -> None:
    bulk = BatchQueue(app.queue("q", concurrency=10), size=3, wait="10m")
    async with working(app) as worker:
        first, second = await bulk.task.enqueue_many([*"ab"])
        await until_it_has(worker, 2)
        assert await first.handle.cancel() == "asked"
        with pytest.raises(JobCancelled):
            await first.handle.result(timeout="60s")
        others = await bulk.task.enqueue_many([*"cd"])
        assert await results([second, *others]) == ["b", "c", "d"]
    assert bulk.calls == [["b", "c", "d"]]


async def test_a_batch_that_all_have_left_is_never_called(app: Faena) -> None:
    bulk = BatchQueue(app.queue("q", concurrency=10), size=3, wait="200ms")
    async with working(app) as worker:
        receipts = await bulk.task.enqueue_many([*"ab"])
        await until_it_has(worker, 2)
        for receipt in receipts:
            await receipt.handle.cancel()
        assert all(isinstance(one, JobCancelled) for one in await results(receipts))
        others = await bulk.task.enqueue_many([*"cde"])
        assert await results(others) == ["c", "d", "e"]
    assert bulk.calls == [["c", "d", "e"]]


async def test_a_job_whose_lease_is_lost_while_it_waits_is_left_out(app: Faena) -> None:
    bulk = BatchQueue(app.queue("q", concurrency=10), size=3, wait="10m")
    async with working(app) as worker:
        lost, kept = await bulk.task.enqueue_many([*"ab"])
        await until_it_has(worker, 2)
        _lose(worker, lost.id)
        others = await bulk.task.enqueue_many([*"cd"])
        assert await results([kept, *others]) == ["b", "c", "d"]
        assert await lost.handle.state() is State.RUNNING, "another worker's, for all we know"
    assert bulk.calls == [["b", "c", "d"]]


def _lose(worker: Worker, job_id: str) -> None:
    """As the heartbeat tells it."""
    fetcher = worker._by_shard["q"]
    lease = fetcher.executor.running[job_id].claim.lease
    worker._stop_job("q", job_id, Stop.LOST, lease)


async def test_a_worker_that_stops_hands_back_what_waits_at_no_attempt(app: Faena) -> None:
    bulk = BatchQueue(app.queue("q", concurrency=10), size=10, wait="10m")
    receipts = await bulk.task.enqueue_many(range(6))
    async with working(app) as worker:
        await until_it_has(worker, 6)
    assert bulk.calls == []
    views = [await receipt.handle.view() for receipt in receipts]
    assert {(view.state, view.attempts_made, view.losses) for view in views} == {
        (State.READY, 0, 0)
    }


async def test_a_job_that_comes_when_the_worker_stops_is_handed_back(
    valkey: Server, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    entered, go_on = asyncio.Event(), asyncio.Event()

    class Slow(Middleware):
        async def execute(self, job: Job, call_next: Execute) -> Any:
            entered.set()
            await go_on.wait()
            return await call_next(job)

    app = Faena("shop", valkey.url, namespace=namespace, middleware=[Slow()])
    bulk = BatchQueue(app.queue("q", concurrency=2), size=2, wait="10m")
    receipts = await bulk.task.enqueue_many([*"ab"])
    async with app:
        worker = await app.worker()
        running = asyncio.create_task(worker.run())
        await entered.wait()
        worker.stop()
        await eventually(lambda: worker._gatherer._is_closed)
        go_on.set()
        await running
        assert [await one.handle.state() for one in receipts] == [State.READY] * 2
        await bulk.queue.obliterate(force=True)
    gc.collect()
    assert (bulk.calls, caplog.records) == ([], [])


async def test_leases_are_kept_while_jobs_wait(app: Faena) -> None:
    """Longer than the lease, and longer than the time that the call itself may take."""
    queue = app.queue("q", concurrency=10, lease="2s")
    bulk = BatchQueue(queue, size=10, wait="6s", timeout="5s")
    receipts = await bulk.task.enqueue_many(range(3))
    async with working(app):
        assert await results(receipts) == [0, 1, 2]
    assert bulk.calls == [[0, 1, 2]]
    assert [(job.attempt, job.losses) for job in bulk.jobs[0]] == [(1, 0)] * 3


# -- while the call runs --------------------------------------------------------------------------


async def test_a_job_that_is_cancelled_under_way_knows_and_the_others_go_on(
    app: Faena, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_limits, "_STUCK_AFTER_S", 0.05)
    bulk = BatchQueue(app.queue("q", concurrency=3), gate.pass_through, size=3, wait="10m")
    receipts = await bulk.task.enqueue_many([*"abc"])
    async with working(app):
        await gate.entered.wait()
        assert await receipts[1].handle.cancel() == "asked"
        await eventually(lambda: [job.cancelled for job in bulk.jobs[0]] == [False, True, False])
        assert await receipts[1].handle.state() is State.RUNNING
        gate.opened.set()
        first, second, third = await results(receipts)
    assert (first, third, gate.stopped) == (1, 1, 0)
    assert isinstance(second, JobCancelled)


async def test_a_call_whose_jobs_are_all_cancelled_is_stopped(app: Faena, gate: Gate) -> None:
    bulk = BatchQueue(app.queue("q", concurrency=3), gate.pass_through, size=3, wait="10m")
    receipts = await bulk.task.enqueue_many([*"abc"])
    async with working(app):
        await gate.entered.wait()
        for receipt in receipts:
            await receipt.handle.cancel()
        assert all(isinstance(one, JobCancelled) for one in await results(receipts))
    assert gate.stopped == 1


async def test_a_call_whose_leases_are_all_lost_is_stopped_and_settles_nothing(
    app: Faena, gate: Gate
) -> None:
    bulk = BatchQueue(app.queue("q", concurrency=3), gate.pass_through, size=3, wait="10m")
    receipts = await bulk.task.enqueue_many([*"abc"])
    async with working(app) as worker:
        await gate.entered.wait()
        for receipt in receipts:
            assert gate.stopped == 0
            _lose(worker, receipt.id)
        await eventually(lambda: gate.stopped)
        await eventually(lambda: worker.running == 0)
    assert [await one.handle.state() for one in receipts] == [State.RUNNING] * 3


async def test_a_thread_whose_jobs_are_all_cancelled_is_interrupted(app: Faena) -> None:
    entered = threading.Event()

    @app.queue("q", concurrency=2).batch(size=2, wait="10m")
    def spin(items: list[str]) -> None:
        entered.set()
        never = threading.Event()
        while not never.wait(0.005):
            pass

    receipts = await spin.enqueue_many([*"ab"])
    async with working(app):
        await asyncio.to_thread(entered.wait)
        for receipt in receipts:
            await receipt.handle.cancel()
        assert all(isinstance(one, JobCancelled) for one in await results(receipts))


async def test_the_time_limit_is_the_calls_and_fails_every_job(app: Faena, gate: Gate) -> None:
    queue = app.queue("q", concurrency=3, retry=QUICK)
    bulk = BatchQueue(queue, gate.pass_through, size=3, wait="100ms", timeout="50ms")
    receipts = await bulk.task.enqueue_many([*"abc"])
    async with working(app):
        failed = await results(receipts)
    assert all(isinstance(one, JobTimedOut) for one in failed)
    assert {one.error.message for one in failed} == {"ran longer than 0.05 s"}
    for receipt in receipts:
        assert len((await receipt.handle.view()).errors) == 2
    assert gate.stopped == len(bulk.calls)


async def test_a_call_has_the_longest_time_that_one_of_its_jobs_has(app: Faena, gate: Gate) -> None:
    bulk = BatchQueue(app.queue("q", concurrency=2), gate.pass_through, size=2, wait="10m")
    async with working(app) as worker:
        receipts = [
            await bulk.task.enqueue("a", timeout="20ms"),
            await bulk.task.enqueue("b", timeout="1h"),
        ]
        await gate.entered.wait()
        attempts = worker._by_shard["q"].executor.running.values()
        assert {attempt.timeout_s for attempt in attempts} == {3600}
        kept = [held.until for held in worker._leases._held["q"].values()]
        assert min(kept) > time.monotonic() + 1800, "the lease of the first is kept as long"
        gate.opened.set()
        assert await results(receipts) == [1, 1]


async def test_a_job_is_stopped_in_the_middleware_that_goes_on_after_the_call(
    valkey: Server, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_limits, "_STUCK_AFTER_S", 1000.0)
    ended = asyncio.Event()

    class Lingering(Middleware):
        async def execute(self, job: Job, call_next: Execute) -> Any:
            await call_next(job)
            ended.set()
            return await asyncio.Event().wait()

    app = Faena("shop", valkey.url, namespace=namespace, middleware=[Lingering()])
    bulk = BatchQueue(app.queue("q", concurrency=2, lease="1h"), size=1)
    async with app:
        async with working(app):
            receipt = await bulk.task.enqueue("a")
            await ended.wait()
            await receipt.handle.cancel()
            with pytest.raises(JobCancelled):
                await receipt.handle.result(timeout="60s")
        await bulk.queue.obliterate(force=True)


async def test_a_job_whose_middleware_gives_up_is_left_out(valkey: Server, namespace: str) -> None:
    class Hasty(Middleware):
        async def execute(self, job: Job, call_next: Execute) -> Any:
            return await asyncio.wait_for(call_next(job), 0.05 if job.key == "hasty" else None)

    app = Faena("shop", valkey.url, namespace=namespace, middleware=[Hasty()])
    bulk = BatchQueue(app.queue("q", concurrency=3, retry=Retry.never()), size=3, wait="10m")
    async with app:
        async with working(app):
            hasty = await bulk.task.enqueue("a", key="hasty")
            with pytest.raises(JobFailed, match="TimeoutError"):
                await hasty.handle.result(timeout="60s")
            assert await results(await bulk.task.enqueue_many([*"bcd"])) == ["b", "c", "d"]
        await bulk.queue.obliterate(force=True)
    assert bulk.calls == [["b", "c", "d"]]


async def test_a_worker_in_a_hurry_hands_back_what_is_under_way(app: Faena, gate: Gate) -> None:
    bulk = BatchQueue(app.queue("q", concurrency=3), gate.pass_through, size=3, wait="10m")
    receipts = await bulk.task.enqueue_many([*"abc"])
    async with working(app) as worker:
        await gate.entered.wait()
        worker.stop()
    views = [await receipt.handle.view() for receipt in receipts]
    assert {(view.state, view.attempts_made, view.losses) for view in views} == {
        (State.READY, 0, 0)
    }
    assert gate.stopped == 1


async def test_a_worker_that_stops_lets_a_call_end(app: Faena, gate: Gate) -> None:
    bulk = BatchQueue(app.queue("q", concurrency=5), gate.pass_through, size=3, wait="10m")
    receipts = await bulk.task.enqueue_many([*"abcde"])
    worker = await app.worker()
    running = asyncio.create_task(worker.run())
    await gate.entered.wait()
    await until_it_has(worker, 5)
    worker.stop()
    await until_it_has(worker, 3)
    gate.opened.set()
    await running
    states = [await receipt.handle.state() for receipt in receipts]
    assert states == [State.COMPLETED] * 3 + [State.READY] * 2


async def test_a_handler_that_ignores_its_end_is_settled_without(
    app: Faena, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_limits, "_STUCK_AFTER_S", 0.1)

    async def ignore(items: list[Any], jobs: list[Job]) -> None:
        while not gate.opened.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await gate.opened.wait()

    queue = app.queue("q", concurrency=2, retry=Retry.never())
    bulk = BatchQueue(queue, ignore, size=2, wait="10m", timeout="50ms")
    receipts = await bulk.task.enqueue_many([*"ab"])
    async with working(app):
        assert all(isinstance(one, JobTimedOut) for one in await results(receipts))
        later = await bulk.task.enqueue_many([*"cd"])
        assert [await one.handle.state() for one in later] == [State.READY] * 2
        assert len(bulk.calls) == 1, "its slots are taken until it ends"
        gate.opened.set()
        assert await results(later) == [None, None]
