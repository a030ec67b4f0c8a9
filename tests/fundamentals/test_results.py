"""Waiting for a job, and learning what became of it."""

from __future__ import annotations

import asyncio

import pytest

from faena import Discard, Faena, Retain, Retry
from faena.errors import (
    JobCancelled,
    JobFailed,
    JobNotFound,
    JobTimedOut,
    PayloadError,
    ResultTimeout,
)
from faena.states import State
from faena.testing import Harness
from tests._support.working import Working


async def test_a_failure_is_raised_to_whoever_waits_with_its_traceback(
    app: Faena, h: Harness
) -> None:
    @app.queue("sums", retry=Retry.never()).task
    async def divide(by: int) -> float:
        return 1 / by

    receipt = await divide.enqueue(0)
    await h.drain()
    with pytest.raises(JobFailed, match="ZeroDivisionError: division by zero") as failed:
        await receipt.handle.result()
    assert "return 1 / by" in str(failed.value)
    assert failed.value.error.name == "ZeroDivisionError"


async def test_a_wait_that_is_over_says_so_and_the_job_goes_on(app: Faena, h: Harness) -> None:
    @app.queue("sums").task
    async def one() -> int:
        return 1

    receipt = await one.enqueue()
    with pytest.raises(ResultTimeout, match=r"is not finished after 0.01 s; it"):
        await receipt.handle.result(timeout="10ms")
    await h.drain()
    assert await receipt.handle.result() == 1


async def test_a_result_that_cannot_be_kept_is_dropped_for_the_work_is_done(
    app: Faena, h: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    sums = app.queue("sums", retry=Retry.never())

    @sums.task
    async def connect():  # a type JSON cannot carry
        return object()

    @sums.task
    async def count() -> int:
        return "many"  # pyright: ignore[reportReturnType] - as wrong as meant

    plain, typed = await connect.enqueue(), await count.enqueue()
    await connect.enqueue()
    await h.drain()
    assert await plain.handle.result() is None
    with pytest.raises(PayloadError, match="must have a result of the handler's return type"):
        await typed.handle.result()
    view = await typed.handle.view()
    assert view is not None
    assert view.state is State.COMPLETED
    assert view.log == (
        "its result was dropped: result must be int, got 1 bad field: $ expected int, got str",
    )
    warnings = [record.getMessage() for record in caplog.records]
    assert [line.partition(": results of task ")[2].split(" ")[0] for line in warnings] == [
        "connect",
        "count",
    ]


async def test_an_attempt_that_runs_too_long_is_stopped(app: Faena, working: Working) -> None:
    @app.queue("slow", retry=Retry.never()).task(timeout="50ms")
    async def hang() -> None:
        await asyncio.Event().wait()

    receipt = await hang.enqueue()
    async with working():
        with pytest.raises(JobTimedOut, match=r"ran longer than 0.05 s"):
            await receipt.handle.result(timeout="60s")


async def test_a_cancelled_job_tells_its_waiter(app: Faena, h: Harness) -> None:
    @app.queue("sums").task
    async def one() -> int:
        return 1

    receipt = await one.enqueue()
    assert await receipt.handle.cancel() == "cancelled"
    with pytest.raises(JobCancelled):
        await receipt.handle.result()
    assert len(await h.drain()) == 0


async def test_everything_known_of_a_job_can_be_read(app: Faena, h: Harness) -> None:
    @app.queue("sums").task
    async def fuss(payload: dict[str, int]) -> None:
        raise Discard("not today")

    receipt = await fuss.enqueue({"n": 1}, tenant="org-1", headers={"trace": "abc"})
    await h.drain()
    view = await receipt.handle.view()
    assert view is not None
    assert (view.state, view.task, view.tenant) == ("dead", "fuss", "org-1")
    assert (bytes(view.payload), view.headers) == (b'{"n":1}', {"trace": "abc"})
    assert view.errors[-1].message == "not today"


async def test_results_are_kept_as_long_as_the_queue_says(app: Faena, h: Harness) -> None:
    @app.queue("sums", retain=Retain(completed="1h")).task
    async def one() -> int:
        return 1

    receipt = await one.enqueue()
    await h.drain()
    h.clock.advance("59m")
    assert await receipt.handle.result() == 1
    h.clock.advance("2m")
    await h.drain()
    with pytest.raises(JobNotFound, match="retention removed it"):
        await receipt.handle.result()


async def test_whole_numbers_come_back_exact_whatever_their_size(app: Faena, h: Harness) -> None:
    numbers = [2**53 + 1, -(2**63), 2**64 - 1, 10**30]

    @app.queue("sums").task
    async def same(number: int) -> int:
        return number

    receipts = await same.enqueue_many(numbers)
    await h.drain()
    assert [await receipt.handle.result() for receipt in receipts] == numbers
    views = [await receipt.handle.view() for receipt in receipts]
    assert [view.result for view in views] == [str(number).encode() for number in numbers]
