"""Batches on a real worker: who is in a call, and what becomes of each job."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from contextvars import ContextVar
from typing import Any

import pytest

from faena import (
    Discard,
    Faena,
    Job,
    Limit,
    Middleware,
    Order,
    RateLimited,
    Retry,
    Snooze,
    State,
)
from faena.errors import JobFailed
from faena.middleware import Execute
from tests._support.batch_queue import QUICK, BatchQueue, results, working
from tests._support.eventually import eventually
from tests._support.valkey import Server

# -- who is in a call -----------------------------------------------------------------------------


async def test_a_full_batch_is_one_call_and_each_job_has_its_own_result(app: Faena) -> None:
    bulk = BatchQueue(app.queue("q", concurrency=10), size=5, wait="10m")
    receipts = await bulk.task.enqueue_many(range(10))
    async with working(app):
        assert await results(receipts) == list(range(10))
    assert bulk.calls == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


async def test_a_batch_begins_before_one_of_its_jobs_expires(app: Faena) -> None:
    bulk = BatchQueue(app.queue("q", concurrency=10), size=5, wait="10m")
    patient = await bulk.task.enqueue(1)
    soon = await bulk.task.enqueue(2, expires="10s")
    async with working(app):
        assert await results([patient, soon]) == [1, 2]
    assert bulk.calls == [[1, 2]]


async def test_a_large_batch_is_filled_by_several_claims(app: Faena) -> None:
    bulk = BatchQueue(app.queue("q", concurrency=300), size=250, wait="10m")
    receipts = await bulk.task.enqueue_many(range(250))
    async with working(app):
        assert await results(receipts) == list(range(250))
    assert bulk.sizes == [250]


async def test_jobs_that_are_too_few_are_called_when_the_first_has_waited(app: Faena) -> None:
    bulk = BatchQueue(app.queue("q", concurrency=10), size=10, wait="50ms")
    receipts = await bulk.task.enqueue_many([*"abc"])
    async with working(app):
        assert await results(receipts) == ["a", "b", "c"]
        (later,) = await bulk.task.enqueue_many([*"d"])
        assert await later.handle.result(timeout="60s") == "d"
    assert bulk.calls == [["a", "b", "c"], ["d"]]


async def test_without_a_wait_a_call_has_what_came_in_one_claim(app: Faena) -> None:
    bulk = BatchQueue(app.queue("q", concurrency=10), size=10, wait="0s")
    receipts = await bulk.task.enqueue_many(range(7))
    async with working(app):
        await results(receipts)
    assert bulk.calls == [list(range(7))]


async def test_a_call_may_be_of_one_tenant_only(app: Faena) -> None:
    bulk = BatchQueue(app.queue("q", concurrency=12), size=4, wait="10m", per_tenant=True)
    drafts = [
        bulk.task.draft(f"{tenant}{number}", **({"tenant": tenant} if tenant else {}))
        for number in range(4)
        for tenant in ("acme", "", "bolt")
    ]
    receipts = await bulk.task.enqueue_many(drafts)
    async with working(app):
        await results(receipts)
    assert sorted(bulk.calls) == [
        [f"{tenant}{number}" for number in range(4)] for tenant in ("", "acme", "bolt")
    ]


async def test_tasks_of_a_queue_gather_apart_and_beside_plain_ones(app: Faena) -> None:
    queue = app.queue("q", concurrency=10)
    bulk = BatchQueue(queue, size=3, wait="10m")

    @queue.task
    async def plain(number: int) -> int:
        return -number

    @queue.batch(size=2, wait="10m")
    async def pairs(numbers: list[int]) -> list[int]:
        return [sum(numbers)] * 2

    async with working(app):
        mixed = [
            await task.enqueue(number) for number in range(3) for task in (bulk.task, plain, pairs)
        ]
        mixed.append(await pairs.enqueue(3))
        assert await results(mixed) == [0, 0, 1, 1, -1, 1, 2, -2, 5, 5]
    assert bulk.calls == [[0, 1, 2]]


async def test_shards_of_a_queue_fill_batches_together(app: Faena) -> None:
    bulk = BatchQueue(app.queue("q", concurrency=12, shards=3), size=12, wait="10m")
    drafts = [bulk.task.draft(number, tenant=f"t{number}") for number in range(12)]
    receipts = await bulk.task.enqueue_many(drafts)
    async with working(app):
        assert await results(receipts) == list(range(12))
    assert bulk.sizes == [12]


async def test_where_tenants_keep_an_order_a_call_has_one_job_of_each(app: Faena) -> None:
    bulk = BatchQueue(app.queue("q", concurrency=10, order=Order.TENANT), size=3, wait="10m")
    drafts = [bulk.task.draft(n, tenant=tenant) for n in range(3) for tenant in ("a", "b", "c")]
    receipts = await bulk.task.enqueue_many(drafts)
    async with working(app):
        await results(receipts)
    assert bulk.calls == [[0, 0, 0], [1, 1, 1], [2, 2, 2]]
    assert all({job.tenant for job in jobs} == {"a", "b", "c"} for jobs in bulk.jobs)


async def test_limits_count_every_job(app: Faena) -> None:
    bulk = BatchQueue(app.queue("q", concurrency=10, limits=[Limit("3/h")]), size=5, wait="50ms")
    receipts = await bulk.task.enqueue_many(range(7))
    async with working(app):
        assert await results(receipts[:3]) == [0, 1, 2]
        assert bulk.calls == [[0, 1, 2]]
        assert (await bulk.queue.counts())["ready"] == 4


async def test_max_running_counts_every_job(app: Faena) -> None:
    bulk = BatchQueue(app.queue("q", concurrency=10, max_running=4), size=10, wait="50ms")
    receipts = await bulk.task.enqueue_many(range(8))
    async with working(app):
        await results(receipts)
    assert bulk.calls == [[0, 1, 2, 3], [4, 5, 6, 7]]


async def test_jobs_that_have_taken_all_slots_wait_for_nobody(app: Faena) -> None:
    bulk = BatchQueue(app.queue("q", concurrency=4), size=4, wait="10m", per_tenant=True)
    drafts = [bulk.task.draft(number, tenant=f"t{number % 6}") for number in range(8)]
    receipts = await bulk.task.enqueue_many(drafts)
    async with working(app):
        assert await results(receipts) == list(range(8))
    assert all(len({job.tenant for job in jobs}) == 1 for jobs in bulk.jobs)


async def test_a_worker_with_fewer_slots_than_a_batch_calls_with_less(app: Faena) -> None:
    bulk = BatchQueue(app.queue("q", concurrency=10), size=10, wait="10m")
    receipts = await bulk.task.enqueue_many(range(6))
    async with working(app, concurrency=3):
        await results(receipts)
    assert bulk.calls == [[0, 1, 2], [3, 4, 5]]


# -- what becomes of each job ---------------------------------------------------------------------


async def test_each_job_ends_as_its_own_entry_says(app: Faena) -> None:
    ends = {
        "value": {"n": 1},
        "none": None,
        "odd": object(),
        "error": ValueError("no such address"),
        "snooze": Snooze("1h"),
        "discard": Discard("blocked"),
        "limit": RateLimited(3600, scope="tenant"),
        "stop": StopIteration(),
    }
    queue = app.queue("q", concurrency=10, retry=Retry.fixed("1h", attempts=2))
    bulk = BatchQueue(
        queue, lambda words, _jobs: [ends[word] for word in words], size=8, wait="10m"
    )
    receipts = await bulk.task.enqueue_many([*ends])
    async with working(app):
        await eventually(lambda: _is_settled(bulk))
    views = {word: await one.handle.view() for word, one in zip(ends, receipts, strict=True)}
    assert {word: view.state for word, view in views.items()} == {
        "value": State.COMPLETED,
        "none": State.COMPLETED,
        "odd": State.COMPLETED,
        "error": State.DELAYED,
        "snooze": State.DELAYED,
        "discard": State.DEAD,
        "limit": State.DELAYED,
        "stop": State.DELAYED,
    }
    assert views["odd"].log[0].startswith("its result was dropped: result must be JSON")
    assert views["value"].result == b'{"n":1}'
    unused = {word for word, view in views.items() if not view.attempts_made}
    assert unused == {"snooze", "limit"}
    errors = {word: view.errors[0].name for word, view in views.items() if view.errors}
    assert errors == {
        "error": "ValueError",
        "discard": "Discard",
        "stop": "RuntimeError",
    }
    assert views["discard"].errors[0].stack is None  # it was returned: nobody raised it


async def _is_settled(bulk: BatchQueue) -> bool:
    counts = await bulk.queue.counts()
    return not counts["ready"] and not counts["running"]


async def test_what_a_handler_raises_is_the_failure_of_every_job(app: Faena) -> None:
    def fail(items: list[Any], jobs: list[Job]) -> None:
        raise ConnectionError(f"attempt {jobs[0].attempt}")

    bulk = BatchQueue(app.queue("q", concurrency=3, retry=QUICK), fail, size=3, wait="50ms")
    receipts = await bulk.task.enqueue_many(range(3))
    async with working(app):
        failed = await results(receipts)
    assert all(isinstance(one, JobFailed) for one in failed)
    for receipt in receipts:
        view = await receipt.handle.view()
        assert [error.message for error in view.errors] == ["attempt 1", "attempt 2"]
        assert "raise ConnectionError" in str(view.errors[0].stack)


async def test_a_signal_that_is_raised_counts_for_every_job(app: Faena) -> None:
    def snooze_once(items: list[Any], jobs: list[Job]) -> None:
        if len(bulk.calls) == 1:
            raise Snooze("1ms")

    bulk = BatchQueue(app.queue("q", concurrency=3), snooze_once, size=3, wait="10m")
    receipts = await bulk.task.enqueue_many(range(3))
    async with working(app):
        assert await results(receipts) == [None] * 3
    assert [job.attempt for job in bulk.jobs[1]] == [1, 1, 1]


@pytest.mark.parametrize(
    ("value", "got"), [([1], "1"), ([1, 2, 3, 4], "4"), (7, "int"), ("abc", "str")], ids=str
)
async def test_an_answer_that_says_nothing_of_each_job_fails_them_all(
    app: Faena, value: Any, got: str
) -> None:
    queue = app.queue("q", concurrency=3, retry=Retry.never())
    bulk = BatchQueue(queue, lambda _items, _jobs: value, size=3, wait="10m")
    receipts = await bulk.task.enqueue_many(range(3))
    async with working(app):
        failed = await results(receipts)
    assert {one.error.name for one in failed} == {"BatchError"}
    wanted = "must return None or a list with an entry for each of its 3 payloads"
    assert {one.error.message for one in failed} == {f"a batch handler {wanted}, got {got}"}


async def test_only_those_that_failed_come_again(app: Faena) -> None:
    def fail_odd(items: list[int], jobs: list[Job]) -> list[Any]:
        return [
            ValueError() if item % 2 and job.attempt == 1 else job.attempt
            for item, job in zip(items, jobs, strict=True)
        ]

    bulk = BatchQueue(app.queue("q", concurrency=4, retry=QUICK), fail_odd, size=4, wait="50ms")
    receipts = await bulk.task.enqueue_many(range(4))
    async with working(app):
        assert await results(receipts) == [1, 2, 1, 2]
    again = Counter(item for call in bulk.calls[1:] for item in call)
    assert again == {1: 1, 3: 1}


async def test_a_payload_that_does_not_fit_fails_its_own_job_alone(
    app: Faena, valkey: Server, namespace: str
) -> None:
    other = Faena("shop", valkey.url, namespace=namespace)

    @other.queue("q").task(name="add")
    async def loose(payload: Any) -> None: ...

    calls: list[list[int]] = []

    @app.queue("q", concurrency=10).batch(size=3, wait="10m", name="add")
    async def add(numbers: list[int]) -> list[int]:
        calls.append(numbers)
        return numbers

    async with other:
        receipts = await loose.enqueue_many([1, "two", 3, 4])
        async with working(app):
            good = [add.handle(receipts[at].id).result(timeout="60s") for at in (0, 2, 3)]
            assert await asyncio.gather(*good) == [1, 3, 4]
        bad = await receipts[1].handle.view()
    assert calls == [[1, 3, 4]]
    assert (bad.state, bad.attempts_made, bad.errors[0].name) == (State.DEAD, 0, "PayloadError")


async def test_progress_and_logs_belong_to_the_job_that_tells_them(app: Faena) -> None:
    def tell(items: list[str], jobs: list[Job]) -> None:
        for item, job in zip(items, jobs, strict=True):
            job.progress(item)
            job.log(f"{item} is done")

    bulk = BatchQueue(app.queue("q", concurrency=3), tell, size=3, wait="10m")
    receipts = await bulk.task.enqueue_many([*"abc"])
    async with working(app):
        await results(receipts)
    views = [await receipt.handle.view() for receipt in receipts]
    assert [(view.progress, view.log) for view in views] == [
        (word, (f"{word} is done",)) for word in "abc"
    ]


async def test_a_plain_function_runs_in_a_thread(app: Faena) -> None:
    names: list[str] = []

    @app.queue("q", concurrency=3).batch(size=3, wait="10m")
    def double(numbers: list[int], jobs: list[Job]) -> list[int | Exception]:
        names.append(threading.current_thread().name)
        jobs[0].log("here")
        return [ValueError() if number < 0 else 2 * number for number in numbers]

    receipts = await double.enqueue_many([1, -1, 3])
    async with working(app):
        assert await results([receipts[0], receipts[2]]) == [2, 6]
        await eventually(lambda: _has_log(receipts[0]))
    assert [name.startswith("faena-job") for name in names] == [True]
    assert (await receipts[1].handle.view()).state is State.DELAYED


async def _has_log(receipt: Any) -> bool:
    return (await receipt.handle.view()).log == ("here",)


# -- middleware -----------------------------------------------------------------------------------


class Diary(Middleware):
    """Writes down what it sees of each attempt; answers for some, lets few in at a time."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.colour: ContextVar[str] = ContextVar("colour", default="none")
        self.room = asyncio.Semaphore(2)

    async def execute(self, job: Job, call_next: Execute) -> Any:
        self.colour.set(str(job.key))
        if job.key == "known":
            return "from the diary"
        async with self.room:
            try:
                value = await call_next(job)
            except ValueError as error:
                self.lines.append(f"{job.key} failed of {error}")
                raise
            self.lines.append(f"{job.key} gave {value}")
            return f"{value}!"


async def test_middleware_is_around_each_job_and_not_around_the_call(
    valkey: Server, namespace: str
) -> None:
    diary = Diary()
    app = Faena("shop", valkey.url, namespace=namespace, middleware=[diary])
    seen: list[str] = []

    def answer(items: list[str], jobs: list[Job]) -> list[Any]:
        seen.append(diary.colour.get())
        return [ValueError(item) if item == "bad" else item.upper() for item in items]

    bulk = BatchQueue(
        app.queue("q", concurrency=10, retry=Retry.never()), answer, size=5, wait="50ms"
    )
    words = ["a", "known", "bad", "b", "c"]
    receipts = [await bulk.task.enqueue(word, key=word) for word in words]
    async with app, working(app):
        ends = await results(receipts)
    assert [ends[at] for at in (0, 1, 3, 4)] == ["A!", "from the diary", "B!", "C!"]
    assert isinstance(ends[2], JobFailed)
    assert sorted(diary.lines) == ["a gave A", "b gave B", "bad failed of bad", "c gave C"]
    assert bulk.calls == [["a", "bad"], ["b", "c"]], "two are let in at a time, and none waits on"
    assert set(seen) == {"none"}
    await bulk.queue.obliterate(force=True)
    await app.close()
