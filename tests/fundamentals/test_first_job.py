"""From a function to a result: what every program does."""

from __future__ import annotations

import os
import threading
from typing import Any

from faena import Faena, Job, Retain, State
from faena.testing import harness
from tests._support.working import Working


async def test_a_task_is_enqueued_here_run_by_a_worker_and_its_result_read_here(
    app: Faena, working: Working
) -> None:
    mail = app.queue("mail")

    @mail.task
    async def welcome(name: str) -> str:
        return f"hola, {name}"

    receipt = await welcome.enqueue("Ana")
    assert receipt.status == "created"
    assert await receipt.handle.state() is State.READY
    async with working():
        assert await receipt.handle.result(timeout="60s") == "hola, Ana"
    assert await receipt.handle.state() is State.COMPLETED


async def test_a_handler_may_ask_about_its_job(app: Faena, working: Working) -> None:
    @app.queue("mail").task
    async def describe(job: Job) -> dict[str, Any]:
        return {"task": job.task, "tenant": job.tenant, "key": job.key, "attempt": job.attempt}

    receipt = await describe.enqueue(tenant="org-1", key="invoice-9")
    async with working():
        told = await receipt.handle.result(timeout="60s")
    assert told == {"task": "describe", "tenant": "org-1", "key": "invoice-9", "attempt": 1}


async def test_many_jobs_travel_together(app: Faena, working: Working) -> None:
    @app.queue("sums", concurrency=50, retain=Retain(completed_count=2000)).task
    async def double(number: int) -> int:
        return 2 * number

    receipts = await double.enqueue_many(range(1500))
    async with working():
        assert await receipts[-1].handle.result(timeout="60s") == 2998
        assert await receipts[0].handle.result(timeout="60s") == 0


async def test_a_task_can_still_be_called_as_the_function_it_is(app: Faena) -> None:
    @app.queue("sums").task
    async def double(number: int) -> int:
        """Twice as much."""
        return 2 * number

    assert await double(4) == 8
    assert (double.__name__, double.__doc__) == ("double", "Twice as much.")


elsewhere = Faena("elsewhere", "redis://localhost")
work = elsewhere.queue("work")


@work.task
def in_a_thread() -> str:
    return threading.current_thread().name


@work.task(run="process")
def in_a_process(number: int) -> tuple[int, int]:
    return os.getpid(), number**2


async def test_a_def_runs_in_a_thread_or_if_it_asks_for_one_in_a_process() -> None:
    async with harness(elsewhere) as h:
        await in_a_thread.enqueue()
        await in_a_process.enqueue(7)
        thread, (pid, square) = [ran.result for ran in (await h.drain()).check()]
    assert thread.startswith("faena-job")
    assert square == 49
    assert pid != os.getpid()
