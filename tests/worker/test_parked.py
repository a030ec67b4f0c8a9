"""Jobs that no worker here can run: put off, with a word about why."""

from __future__ import annotations

import pytest

from faena import Faena, Snooze
from faena.testing import harness
from tests._support.deployment import deployed
from tests._support.eventually import eventually
from tests._support.valkey import Server
from tests._support.working import serving

URL = "redis://localhost"  # never dialled: the harness takes its place


async def _told_of(app: Faena, job_id: str) -> list[str]:
    """What was told of a job, until it was parked for the third time."""
    names: list[str] = []
    async for event in app.events("mail", since="start"):
        if event.job == job_id:
            names.append(event.name)
            if names.count("parked") == 3:
                return names
    raise AssertionError("events never end")


async def test_a_job_of_an_unknown_task_says_why_it_is_put_off_and_how_often(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, client = Faena("server", URL), Faena("client", URL)
    mail = server.queue("mail")

    @mail.task
    async def send(to: str) -> None: ...

    misspelt = client.remote_queue("mail").stub("sned", payload=str)
    async with harness(server) as h, deployed(client, h):
        await h.drain()  # declares the queue
        handle = (await misspelt.enqueue("ana")).handle
        for number in (1, 2, 3):
            assert (await h.drain()).counts == {"parked": 1}
            view, told = await handle.view(), await handle.explain()
            assert view is not None
            assert (view.parked, view.snoozes) == (number, 0)
            assert view.parked_reason == "no worker here knows task 'sned'"
            h.clock.advance("15s")
        assert "it is parked (no worker here knows task 'sned'; parked 3 times), for" in str(told)
        assert told.expected_at is None
        events = await _told_of(server, handle.id)
        assert events == ["enqueued", *["claimed", "parked", "promoted"] * 3][: len(events)]
    (record, *_) = [one for one in caplog.records if one.levelname == "WARNING"]
    assert record.getMessage() == (
        "queue mail: this worker does not know task 'sned' (did you mean 'send'? valid: send): its "
        "jobs wait for a worker that does; start one, or cancel the jobs and enqueue them under "
        "the right name"
    )


async def test_a_job_of_a_newer_version_says_why_it_is_put_off(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, client = Faena("server", URL), Faena("client", URL)

    @server.queue("q").task
    async def ship() -> None: ...

    newer = client.remote_queue("q").stub("ship", payload=None, version=2)
    async with harness(server) as h, deployed(client, h):
        await h.drain()  # declares the queue
        handle = (await newer.enqueue()).handle
        await h.drain()
        assert "no worker here knows version 2 of task 'ship'" in str(await handle.explain())
    assert "version 2 of task 'ship' (this worker has version 1)" in caplog.text


async def test_what_a_job_was_parked_for_goes_when_a_handler_puts_it_off() -> None:
    old, new = Faena("old", URL), Faena("new", URL)
    old.queue("q")

    @new.queue("q").task
    async def novelty() -> None:
        raise Snooze("1m", reason="closed", most=1)

    async with harness(old) as h, deployed(new, h) as later:
        handle = (await novelty.enqueue()).handle
        await h.drain()
        h.clock.advance("15s")
        assert (await later.drain()).counts == {"snoozed": 1}  # parking is no snooze of its own
        assert "it was snoozed (closed), for another 1m" in str(await handle.explain())


async def test_a_parked_job_that_is_put_off_by_hand_waits_for_that_alone() -> None:
    app, client = Faena("server", URL), Faena("client", URL)
    app.queue("q")
    stub = client.remote_queue("q").stub("sned", payload=None)
    async with harness(app) as h, deployed(client, h):
        await h.drain()  # declares the queue
        handle = (await stub.enqueue()).handle
        await h.drain()
        await handle.change(delay="1h")
        told = await handle.explain()
        assert [gate.name for gate in told.gates if gate.until] == ["delayed"]
        assert "it is not due yet, for another 1h" in str(told)


async def test_a_real_worker_tells_of_an_unknown_task_once(
    valkey: Server, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = Faena("app", valkey.url, namespace=namespace)
    other = Faena("other", valkey.url, namespace=namespace)
    app.queue("q")

    @other.queue("q").task
    async def novelty() -> None: ...

    async def are_parked() -> bool:
        return (await other.queues["q"].counts())["delayed"] == 3

    async with app, other:
        await novelty.enqueue_many([novelty.draft()] * 3)
        async with serving(app):
            await eventually(are_parked)
        await other.queues["q"].obliterate()
    assert caplog.text.count("does not know task 'novelty' (there is none)") == 1
