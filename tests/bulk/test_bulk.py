"""What is done to many jobs is done to each that fits, and says what was not done and why."""

from __future__ import annotations

import pytest

from faena import Faena, Retry
from faena.bulk.bulks import Chosen
from faena.bulk.record import BulkView
from faena.errors import ArgumentError, ConfigError, JobNotFound
from faena.inspection.job_query import JobQuery
from faena.task import Task
from tests._support.eventually import eventually
from tests._support.working import Working
from tests.bulk.conftest import query


async def carried_out(app: Faena, action: str, text: str) -> BulkView:
    ident = await app.bulk.begin(action, query=query(text), by="ana", reason="a test")
    await app.bulk.carry_on(ident)
    return await app.bulk.get(ident)


async def counts(app: Faena) -> dict[str, int]:
    found = await app.queues["mail"].counts()
    return {name: number for name, number in found.items() if number}


async def test_all_that_match_are_cancelled_and_no_others(
    app: Faena, send: Task[int, None]
) -> None:
    await send.enqueue_many(range(250), tenant="acme")
    await send.enqueue_many(range(3), tenant="bolt")
    view = await carried_out(app, "cancel", "tenant:acme")
    assert (view.state, view.done, view.refused, view.looked) == ("done", 250, {}, 253)
    assert await counts(app) == {"ready": 3, "cancelled": 250}
    assert (view.by, view.query, view.pending) == ("ana", "tenant:acme", 0)


async def test_each_action_is_about_the_jobs_that_it_fits(
    app: Faena, send: Task[int, None]
) -> None:
    await send.enqueue_many([1, 2], delay="1h")
    await send.enqueue_many([3, 4, 5])
    assert (await carried_out(app, "promote", "task:send")).done == 2
    assert (await carried_out(app, "rerun", "queue:mail")).done == 0
    assert (await carried_out(app, "cancel", "task:se*")).done == 5
    assert (await carried_out(app, "rerun", "state:cancelled")).done == 5
    await app.run_worker(until_empty=True)
    assert (await carried_out(app, "remove", "state:completed queue:mail")).done == 5
    assert await counts(app) == {}


async def test_dead_jobs_are_retried_resolved_and_discarded_once_each(app: Faena) -> None:
    post = app.queue("mail", retry=Retry.fixed("1s", attempts=1))

    @post.task
    async def print_it(number: int) -> None:
        raise ConnectionError(f"paper {number}")

    await print_it.enqueue_many(range(12))
    await app.run_worker(until_empty=True)
    assert (await carried_out(app, "resolve", 'error:"paper 1"')).done == 3
    assert (await carried_out(app, "discard", 'error:"paper 2"')).done == 1
    view = await carried_out(app, "retry", "state:dead")
    assert (view.done, view.refused) == (8, {"resolved": 3, "discarded": 1})
    assert (await app.dead_letters.stats()).by_status["retried"] == 8
    assert len(view.shown) == 4
    await (await app.runtime()).engine.command("DEL", "@bulk", "bulks")


async def test_chosen_jobs_are_changed_and_what_is_gone_is_said(
    app: Faena, send: Task[int, None]
) -> None:
    first, second, _ = await send.enqueue_many([1, 2, 3])
    await app.queues["mail"].handle(second.id).cancel()
    jobs = [Chosen("mail", one) for one in (first.id, second.id, "gone")]
    ident = await app.bulk.begin("cancel", jobs=jobs)
    await app.bulk.carry_on(ident)
    view = await app.bulk.get(ident)
    assert (view.done, view.refused) == (1, {"unknown": 1, "cancelled": 1})
    assert ("mail", "gone", "unknown") in view.shown
    assert await counts(app) == {"ready": 1, "cancelled": 2}


async def test_a_job_that_ended_after_the_beginning_is_not_rerun(
    app: Faena, send: Task[int, None]
) -> None:
    await send.enqueue_many([1, 2])
    await app.run_worker(until_empty=True)
    ident = await app.bulk.begin("rerun", query=query("task:send"))
    await send.enqueue(3)
    await app.run_worker(["mail"], until_empty=True)
    await app.bulk.carry_on(ident)
    view = await app.bulk.get(ident)
    assert view.done + view.refused.get("later", 0) >= 2
    assert view.done <= 2


async def test_a_stopped_one_goes_on_where_it_was(app: Faena, send: Task[int, None]) -> None:
    await send.enqueue_many(range(150))
    ident = await app.bulk.begin("cancel", query=query("task:send"))
    assert (await app.bulk.stop(ident)).state == "stopped"
    await app.bulk.carry_on(ident)
    assert await counts(app) == {"ready": 150}
    assert (await app.bulk.resume(ident)).state == "running"
    await app.bulk.carry_on(ident)
    assert ((await app.bulk.get(ident)).state, await counts(app)) == ("done", {"cancelled": 150})


async def test_a_worker_carries_it_out(app: Faena, send: Task[int, None], working: Working) -> None:
    await send.enqueue_many(range(20), delay="1h")
    async with working():
        ident = await app.bulk.begin("cancel", query=query("task:send"))

        async def is_done() -> bool:
            return (await app.bulk.get(ident)).state == "done"

        await eventually(is_done)
    assert await counts(app) == {"cancelled": 20}


async def test_what_makes_no_sense_is_refused(app: Faena, send: Task[int, None]) -> None:
    with pytest.raises(ConfigError, match=r"action must be .*cancel"):
        await app.bulk.begin("cancl", query=JobQuery())
    with pytest.raises(ArgumentError, match="a query, or 1 to 200 jobs"):
        await app.bulk.begin("cancel")
    with pytest.raises(ConfigError, match="queue must be"):
        await app.bulk.begin("cancel", jobs=[Chosen("nail", "x")])
    with pytest.raises(JobNotFound):
        await app.bulk.stop("none")
