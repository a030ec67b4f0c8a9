"""Batch tasks in users' tests: inline, and drained on the test's own clock."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from faena import Faena, Job, Limit, Middleware, Retry, Snooze
from faena.errors import PayloadError
from faena.middleware import Execute
from faena.testing import attempt, harness, run_inline, sync_harness
from tests._support.batch_queue import BatchQueue

URL = "redis://localhost"  # never dialled: the harness takes its place


@pytest.fixture
def app() -> Faena:
    return Faena("shop", URL)


def queue_of(app: Faena, **options: Any) -> Any:
    return app.queue("q", concurrency=10, retry=Retry.fixed("1m", attempts=2, jitter=0), **options)


async def test_one_job_of_a_batch_needs_no_broker_and_waits_for_nobody(app: Faena) -> None:
    def answer(items: list[Any], jobs: list[Job]) -> list[Any]:
        jobs[0].progress(50)
        return [Snooze("5m") if item == "later" else item.upper() for item in items]

    bulk = BatchQueue(queue_of(app), answer, size=10, wait="10m")
    assert await run_inline(bulk.task, "now") == "NOW"
    ran = await attempt(bulk.task, "later")
    assert (ran.ending, ran.progress) == ("snoozed", 50)
    with pytest.raises(Snooze):
        await run_inline(bulk.task, "later")
    assert bulk.sizes == [1, 1, 1]


async def test_a_wrong_answer_is_noticed_inline(app: Faena) -> None:
    bulk = BatchQueue(queue_of(app), lambda _items, _jobs: [object()], size=10)
    with pytest.raises(PayloadError, match="result must be JSON"):
        await run_inline(bulk.task, 1)


async def test_a_drain_fills_batches_with_what_is_there(app: Faena) -> None:
    bulk = BatchQueue(queue_of(app), size=4, wait="10m")
    async with harness(app) as h:
        await bulk.task.enqueue_many(range(10))
        report = await h.drain()
    assert report.counts == {"completed": 10}
    assert sorted(ran.result for ran in report) == list(range(10))
    assert bulk.calls == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


async def test_a_drain_goes_through_retries_and_snoozes_of_single_jobs(app: Faena) -> None:
    def answer(items: list[Any], jobs: list[Job]) -> list[Any]:
        ends = {"fail": ValueError("no"), "ok": 1}
        return [ends[item] for item in items]

    bulk = BatchQueue(queue_of(app), answer, size=4, wait="10m")
    async with harness(app) as h:
        await bulk.task.enqueue_many(["ok", "fail", "ok", "fail"])
        report = await h.drain(through="1h")
    assert report.counts == {"completed": 2, "retried": 2, "dead": 2}
    assert {str(ran.raised) for ran in report if ran.raised} == {"no"}
    assert bulk.calls == [["ok", "fail", "ok", "fail"], ["fail", "fail"]]


async def test_a_drain_keeps_tenants_apart_and_counts_limits_per_job(app: Faena) -> None:
    queue = queue_of(app, limits=[Limit("5/min")])
    bulk = BatchQueue(queue, lambda items, _jobs: None, size=4, wait="10m", per_tenant=True)
    async with harness(app) as h:
        for number in range(3):
            for tenant in ("acme", "bolt"):
                await bulk.task.enqueue(f"{tenant}{number}", tenant=tenant)
        assert (await h.drain()).counts == {"completed": 5}
        assert bulk.calls == [["acme0", "acme1", "acme2"], ["bolt0", "bolt1"]]
        h.clock.advance("1m")
        assert (await h.drain()).counts == {"completed": 1}


async def test_batches_and_plain_tasks_are_drained_together(app: Faena) -> None:
    queue = queue_of(app)
    bulk = BatchQueue(queue, size=5, wait="10m")

    @queue.task
    async def order(numbers: list[int]) -> int:
        receipts = await bulk.task.enqueue_many([*numbers])
        return sum([await one.handle.result(timeout="60s") for one in receipts])

    async with harness(app) as h:
        receipt = await order.enqueue([1, 2, 3])
        assert (await h.drain(at_once=2)).counts == {"completed": 4}
        assert await receipt.handle.result() == 6
    assert sum(bulk.sizes) == 3


async def test_a_drain_passes_each_job_through_middleware_that_takes_its_time(
    app: Faena,
) -> None:
    class Slow(Middleware):
        async def execute(self, job: Job, call_next: Execute) -> Any:
            await asyncio.sleep(0)
            return f"{await call_next(job)}!"

    slow = Faena("slow", URL, middleware=[Slow()])
    bulk = BatchQueue(queue_of(slow), size=3, wait="10m")
    async with harness(slow) as h:
        await bulk.task.enqueue_many([*"abc"])
        assert [ran.result for ran in await h.drain()] == ["a!", "b!", "c!"]
    assert bulk.calls == [["a", "b", "c"]]


async def test_a_drain_that_is_cut_short_hands_back_a_batch(app: Faena) -> None:
    begun = asyncio.Semaphore(0)

    async def wait(items: list[Any], jobs: list[Job]) -> None:
        begun.release()
        await asyncio.Event().wait()

    bulk = BatchQueue(queue_of(app), wait, size=2, wait="10m")
    async with harness(app) as h:
        await bulk.task.enqueue_many([*"abc"])
        draining = asyncio.create_task(h.drain(at_once=2))
        await begun.acquire()
        await begun.acquire()  # both places are taken: the drain waits
        draining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await draining
        found = await h.assert_enqueued(bulk.task, state="ready", count=3)
        assert {job.attempts_made for job in found} == {0}


def test_threads_and_code_without_an_event_loop_have_batches_too(app: Faena) -> None:
    @queue_of(app).batch(size=3, wait="10m")
    def double(numbers: list[int]) -> list[int]:
        return [2 * number for number in numbers]

    with sync_harness(app) as h:
        receipts = app.sync.enqueue_many(double, [1, 2, 3])
        h.assert_enqueued(double, payload=2, count=1)
        assert h.drain().check().counts == {"completed": 3}
        assert [app.sync.result(one.handle) for one in receipts] == [2, 4, 6]
        assert h.run_inline(double, 5) == 10
