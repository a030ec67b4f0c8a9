"""What operators do to jobs and queues that are there."""

from __future__ import annotations

import asyncio

import pytest

from faena import Discard, Faena, Job, Limit
from faena.errors import InvalidTransition, JobNotFound
from faena.testing import Harness


async def test_a_paused_queue_takes_jobs_in_and_serves_none(app: Faena, h: Harness) -> None:
    mail = app.queue("mail")

    @mail.task
    async def note() -> None: ...

    await mail.pause(reason="maintenance", by="ana")
    await note.enqueue()
    assert len(await h.drain()) == 0
    (hold,) = (await mail.overview()).holds
    assert (hold.reason, hold.by) == ("maintenance", "ana")
    await mail.resume(reason="maintenance")
    assert len(await h.drain()) == 1


async def test_a_pause_can_end_by_itself(app: Faena, h: Harness) -> None:
    mail = app.queue("mail")

    @mail.task
    async def note() -> None: ...

    await note.enqueue()
    await mail.pause(lasting="10m")
    assert len(await h.drain(through="9m")) == 0
    assert len(await h.drain(through="1m")) == 1


async def test_a_dead_job_can_be_sent_on_its_way_again(app: Faena, h: Harness) -> None:
    is_mended = False

    @app.queue("mail").task
    async def note(job: Job) -> int:
        if not is_mended:
            raise Discard("broken")
        return job.attempt

    receipt = await note.enqueue()
    await h.drain()
    is_mended = True
    await receipt.handle.rerun()
    await h.drain()
    assert await receipt.handle.result() == 1


async def test_a_running_job_can_be_cancelled_from_anywhere(app: Faena, h: Harness) -> None:
    begun = asyncio.Event()
    tidied: list[str] = []

    @app.queue("mail").task
    async def forever() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            tidied.append("up")

    receipt = await forever.enqueue()
    draining = asyncio.create_task(h.drain())
    await begun.wait()
    assert await receipt.handle.cancel() == "asked"
    assert (await draining).counts == {"cancelled": 1}
    assert tidied == ["up"]


async def test_what_cannot_be_done_is_said(app: Faena, h: Harness) -> None:
    mail = app.queue("mail")

    @mail.task
    async def note() -> None: ...

    receipt = await note.enqueue()
    await h.drain()
    with pytest.raises(InvalidTransition, match="it is completed"):
        await receipt.handle.cancel()
    with pytest.raises(JobNotFound, match="no job nobody in this queue"):
        await mail.handle("nobody").cancel()


async def test_jobs_are_listed_by_state_page_by_page(app: Faena, h: Harness) -> None:
    mail = app.queue("mail")

    @mail.task
    async def note(number: int) -> None: ...

    await note.enqueue_many(range(5))
    first = await mail.jobs("ready", limit=3)
    rest = await mail.jobs("ready", limit=3, cursor=first.cursor)
    assert [len(first.jobs), len(rest.jobs), rest.cursor] == [3, 2, None]
    assert (await mail.counts())["ready"] == 5


async def test_settings_change_at_run_time_for_every_worker(app: Faena, h: Harness) -> None:
    mail = app.queue("mail", limits=[Limit("1/min")])

    @mail.task
    async def note(number: int) -> None: ...

    await note.enqueue_many(range(6))
    assert len(await h.drain()) == 1
    await mail.configure(limits=[Limit("3/min")])
    assert len(await h.drain()) == 2
    await mail.reset("limits")
    assert (await mail.overview()).settings["limits"] == "1/60000000"


async def test_old_jobs_are_cleaned_waiting_ones_drained_and_a_queue_removed(
    app: Faena, h: Harness
) -> None:
    mail = app.queue("mail")

    @mail.task
    async def note(number: int) -> None: ...

    await note.enqueue_many([1, 2])
    await h.drain()
    h.clock.advance("2h")
    await note.enqueue_many([3, 4, 5])
    assert await mail.clean("completed", age="1h") == 2
    assert await mail.drain() == 3
    assert sum((await mail.counts()).values()) == 0
    await mail.obliterate()
    assert await h.jobs() == []


async def test_a_job_that_nobody_needs_is_removed_for_good(app: Faena) -> None:
    mail = app.queue("mail")

    @mail.task
    async def send(to: str) -> str:
        return to

    handle = (await send.enqueue("ana")).handle
    await handle.remove()
    assert await handle.state() is None
    with pytest.raises(JobNotFound):
        await handle.remove()


async def test_all_delayed_jobs_are_promoted_at_once(app: Faena) -> None:
    mail = app.queue("mail")

    @mail.task
    async def send(to: str) -> str:
        return to

    await send.enqueue_many(["ana", "bob"], delay="1h")
    assert await mail.promote_all() == 2
    assert (await mail.counts())["ready"] == 2
