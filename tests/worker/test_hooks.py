"""One hook for each death on a real worker, however the job died."""

from __future__ import annotations

import asyncio
import os

import pytest

from faena import Death, Discard, Faena, Queue, Retry, State, Task
from tests._support.batch_queue import working
from tests._support.eventually import eventually
from tests._support.failing_script import make_fail
from tests._support.valkey import Server

FAILS = "for i = 10, #ARGV do if ARGV[i] == 'bad' and ARGV[i + 2] ~= 'bury' then error('x') end end"

shop = Faena("hooks")
apart = shop.queue("apart", retry=Retry.never(), timeout="60s")
told: list[Death] = []


@apart.task(run="process")
def work(word: str) -> None:
    if word == "exit":
        os._exit(3)
    raise LookupError(word)


@work.on_dead
async def tell(death: Death) -> None:
    told.append(death)


def bell(task: Task[..., object]) -> list[Death]:
    """Has a hook keep the deaths of a task."""
    deaths: list[Death] = []

    @task.on_dead
    async def ring(death: Death) -> None:
        deaths.append(death)

    return deaths


async def rang(queue: Queue, hook: str, times: int = 1) -> bool:
    """Whether so many jobs of a hook are completed, and there is no other."""
    pages = [(await queue.jobs(state)).jobs for state in State]
    hooks = {one.id: one.state for page in pages for one in page if one.task == hook}
    assert len(hooks) <= times
    return list(hooks.values()) == [State.COMPLETED] * times


async def test_a_job_that_ran_too_long_has_one_hook(app: Faena) -> None:
    queue = app.queue("slow", timeout="50ms", retry=Retry.never())

    @queue.task
    async def crawl() -> None:
        await asyncio.Event().wait()

    deaths = bell(crawl)
    receipt = await crawl.enqueue()
    async with working(app):
        await eventually(lambda: rang(queue, "crawl.on_dead"))
    assert await rang(queue, "crawl.on_dead")
    (death,) = deaths
    assert (death.job_id, death.attempts_made) == (receipt.id, 1)
    assert death.error is not None
    assert death.error.code == "TIMEOUT"


async def test_a_job_of_a_batch_has_a_hook_and_its_neighbours_have_none(app: Faena) -> None:
    queue = app.queue("bulk", retry=Retry.never())

    @queue.batch(size=3, wait="10m")
    async def post(numbers: list[int]) -> list[object]:
        return [Discard("odd") if number % 2 else number for number in numbers]

    deaths = bell(post)
    receipts = await post.enqueue_many([0, 1, 2])
    async with working(app):
        await eventually(lambda: rang(queue, "post.on_dead"))
    assert await rang(queue, "post.on_dead")
    assert [death.job_id for death in deaths] == [receipts[1].id]
    assert await deaths[0].payload() == 1


async def test_a_batch_that_fails_as_a_whole_has_a_hook_for_each_job(app: Faena) -> None:
    queue = app.queue("bulk", retry=Retry.never())

    @queue.batch(size=3, wait="10m")
    async def post(numbers: list[int]) -> list[int]:
        raise LookupError(str(numbers))

    deaths = bell(post)
    receipts = await post.enqueue_many([0, 1, 2])
    async with working(app):
        await eventually(lambda: rang(queue, "post.on_dead", times=3))
    assert {death.job_id for death in deaths} == {receipt.id for receipt in receipts}


@pytest.mark.usefixtures("short")
async def test_a_job_in_a_process_of_its_own_has_one_hook(valkey: Server, namespace: str) -> None:
    told.clear()
    with shop.override(url=valkey.url, namespace=namespace):
        try:
            receipts = await work.enqueue_many(["no such word", "exit"])
            async with working(shop):
                await eventually(lambda: rang(apart, "work.on_dead", times=2))
            assert await rang(apart, "work.on_dead", times=2)
        finally:
            await apart.obliterate(force=True)
            await shop.close()
    names = {death.job_id: death.error.name for death in told if death.error}
    assert names == {receipts[0].id: "LookupError", receipts[1].id: "WorkerDied"}


async def test_a_job_that_cannot_be_settled_has_one_hook(
    app: Faena, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = app.queue("q")

    @queue.task
    async def add() -> int:
        return 1

    deaths = bell(add)
    make_fail(monkeypatch, "exchange", FAILS)
    for job in ("good", "bad"):
        await add.enqueue(id=job)
    async with working(app):
        await eventually(lambda: rang(queue, "add.on_dead"))
    assert await rang(queue, "add.on_dead")
    (death,) = deaths
    assert (death.job_id, death.task, death.attempts_made) == ("bad", "add", 1)
    assert death.error is not None
    assert death.error.code == "SCRIPT_ERROR"
