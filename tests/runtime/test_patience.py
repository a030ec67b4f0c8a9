"""Callers of different patience, one after the other and together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from faena import Faena, Task
from faena.errors import ConfigError, StoreUnavailable
from faena.producing.batcher import BATCH, _within_ms, told
from tests._support.valkey import Server

FAR = "1h"


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    with Server("appendonly yes", "appendfsync everysec") as server:
        yield server


@pytest.fixture
def server(shared: Server) -> Iterator[Server]:
    yield shared
    shared.resume()
    with shared.client() as client:
        client.flushall()


def task_on(app: Faena, **options: Any) -> Task[None, None]:
    @app.queue("q", **options).task
    async def nothing() -> None: ...

    return nothing


@pytest.fixture
async def app(server: Server) -> AsyncIterator[Faena]:
    app = Faena("shop", server.url, patience="300ms")
    yield app
    server.resume()
    await app.close()


async def failing(task: asyncio.Task[Any]) -> StoreUnavailable:
    with pytest.raises(StoreUnavailable) as told:
        await task
    return told.value


async def behind_a_patient_call(
    app: Faena, server: Server
) -> tuple[Task[None, None], asyncio.Task[Any]]:
    """A task of a server that does not answer, and a call that is under way and waits for it."""
    task = task_on(app)
    await task.enqueue()
    server.pause()
    patient = asyncio.create_task(task.enqueue(patience=FAR))
    await asyncio.sleep(0)
    return task, patient


async def test_a_patient_caller_outlasts_those_it_had_to_wait_for_and_travels_with(
    app: Faena, server: Server
) -> None:
    task = task_on(app)
    await task.enqueue()
    server.pause()
    first = asyncio.create_task(task.enqueue())
    await asyncio.sleep(0)
    plain = asyncio.create_task(task.enqueue())
    patient = asyncio.create_task(task.enqueue(patience=FAR))
    hasty = asyncio.create_task(task.enqueue(patience="50ms"))
    more = asyncio.create_task(task.enqueue_many([task.draft()] * 3, patience=FAR))
    assert not (await failing(hasty)).is_outcome_unknown
    assert (await failing(first)).is_outcome_unknown
    await failing(plain)
    assert not patient.done()
    server.resume()
    assert (await patient).status == "created"
    assert [one.status for one in await more] == ["created"] * 3


async def test_the_members_of_a_group_are_sent_with_the_patience_of_their_call(
    app: Faena, server: Server
) -> None:
    task, group = task_on(app), app.group()
    await group.enqueue_many(task, [task.draft()])
    server.pause()
    patient = asyncio.create_task(group.enqueue_many(task, [task.draft()] * 3, patience=FAR))
    for _ in range(2):  # the first may have gone before it, the second has waited for it
        await failing(asyncio.create_task(task.enqueue()))
    assert not patient.done()
    server.resume()
    assert [one.status for one in await patient] == ["created"] * 3


async def test_whoever_waits_behind_a_patient_caller_is_told_in_its_own_time(
    app: Faena, server: Server
) -> None:
    task, patient = await behind_a_patient_call(app, server)
    plain = [asyncio.create_task(task.enqueue()) for _ in range(3)]
    for one in plain:
        error = await failing(one)
        assert not error.is_outcome_unknown
        assert "nothing was enqueued" in str(error)
    assert not patient.done()
    server.resume()
    await patient
    assert (await app.queues["q"].counts())["ready"] == 2


async def test_what_was_given_up_before_it_was_sent_is_never_sent(
    app: Faena, server: Server
) -> None:
    task, patient = await behind_a_patient_call(app, server)
    error = await failing(asyncio.create_task(task.enqueue(patience="50ms")))
    assert "nothing was enqueued" in str(error)
    server.resume()
    await patient
    await task.enqueue()
    assert (await app.queues["q"].counts())["ready"] == 3


async def test_servers_may_take_as_long_to_confirm_as_the_patient_caller_allows(
    server: Server,
) -> None:
    app = Faena("shop", server.url)
    task = task_on(app)
    await task.enqueue()
    calls = [
        asyncio.create_task(task.enqueue(durability="fsynced", **options))
        for options in ({}, {"patience": "1ms"}, {}, {"patience": FAR}, {"patience": FAR})
    ]
    first, _, third, patient, other = await asyncio.gather(*calls, return_exceptions=True)
    for receipt in (first, third, patient, other):
        assert not isinstance(receipt, BaseException)
        assert receipt.durability == "fsynced"
    await app.close()


async def test_a_first_use_that_gives_up_early_does_not_end_that_of_others(server: Server) -> None:
    app = Faena("shop", server.url, patience="10s")
    task = task_on(app, fair=True)
    server.pause()
    hasty = asyncio.create_task(task.enqueue(patience="100ms"))
    await asyncio.sleep(0.05)  # it has begun to connect
    plain = asyncio.create_task(task.enqueue())
    patient = asyncio.create_task(task.enqueue(patience=FAR))
    await failing(hasty)
    server.resume()
    assert (await plain).status == (await patient).status == "created"
    await app.close()


async def test_whoever_joins_a_patient_first_use_gives_up_in_its_own_time(server: Server) -> None:
    app = Faena("shop", server.url, patience="1h")
    task = task_on(app)
    server.pause()
    patient = asyncio.create_task(task.enqueue())
    await asyncio.sleep(0.05)
    error = await failing(asyncio.create_task(task.enqueue(patience="100ms")))
    assert "another call is still trying; nothing was enqueued" in str(error)
    server.resume()
    assert (await patient).status == "created"
    await app.close()


async def test_whoever_has_waited_as_long_as_a_call_may_take_waits_for_no_other(
    app: Faena, server: Server
) -> None:
    task = task_on(app)
    await task.enqueue()
    server.pause()
    drafts = [task.draft()] * BATCH  # no two such lists travel together
    calls = [asyncio.create_task(task.enqueue_many(drafts)) for _ in range(4)]
    _, _, *others = [await failing(call) for call in calls]
    for error in others:
        assert "for earlier jobs of queue q" in str(error)
        assert not error.is_outcome_unknown


async def test_every_call_of_a_block_shares_its_patience(server: Server) -> None:
    app = Faena("shop", server.url, patience="1h")
    task = task_on(app)
    receipt = await task.enqueue(delay="1h")
    handle, queue = receipt.handle, app.queues["q"]
    server.pause()
    for call in (
        handle.view,
        handle.cancel,
        handle.explain,
        queue.counts,
        queue.pause,
        app.dead_letters.stats,
        app.schedules.list,
        lambda: queue.tenant("acme").view(),
        task.enqueue,
    ):
        with app.patience("60ms"), pytest.raises(StoreUnavailable):
            await call()
    server.resume()
    with app.patience("1h"):
        assert await handle.cancel() == "cancelled"
    await app.close()


async def test_taking_in_what_has_arrived_takes_no_time_beyond_the_patience(
    app: Faena, server: Server
) -> None:
    task = task_on(app)
    await task.enqueue()
    engine = (await app.runtime()).engine
    engine.wire._call_timeout_s = 3600.0  # the silence that a call bears has no say
    server.pause()
    async with asyncio.timeout(60):
        with app.patience("60ms"), pytest.raises(StoreUnavailable):
            await engine.overview("q")  # as readers of several shards do, when one has stopped


async def test_what_has_a_time_of_its_own_goes_by_that(server: Server) -> None:
    app = Faena("shop", server.url)
    task = task_on(app)
    receipt = await task.enqueue()
    server.pause()
    with app.patience("1ms"):
        result = asyncio.create_task(receipt.handle.result("1h"))
        sent = asyncio.create_task(task.enqueue(patience="1h"))
        await asyncio.sleep(0.1)
        server.resume()
        assert (await sent).status == "created"
    await app.run_worker(until_empty=True)
    assert await result is None
    await app.close()


def test_a_block_bounds_calls_without_an_event_loop_too(server: Server) -> None:
    app = Faena("shop", server.url, patience="1h")
    task = task_on(app)
    receipt = app.sync.enqueue(task)
    server.pause()
    with app.patience("60ms"), pytest.raises(StoreUnavailable):
        app.sync.view(receipt.handle)
    server.resume()
    with app.patience("1h"):
        assert app.sync.cancel(receipt.handle) == "cancelled"
    app.sync.close()


@pytest.mark.parametrize("patience", ["soon", 5, "0s", None])
def test_a_patience_that_is_no_duration_is_refused(app: Faena, patience: Any) -> None:
    with pytest.raises(ConfigError, match="patience must be"), app.patience(patience):
        pass


async def test_no_server_is_asked_to_confirm_for_ever() -> None:
    """Which is what 0 means to it."""
    now = asyncio.get_running_loop().time()
    assert [_within_ms(until) for until in (now, now - 60, None)] == [1, 1, 5000]


@pytest.mark.parametrize(("op", "is_unknown"), [("enqueue", True), ("configure", False)])
def test_only_an_enqueue_that_was_not_answered_may_have_been_one(op: str, is_unknown: bool) -> None:
    error = told(StoreUnavailable("no answer", op=op, is_outcome_unknown=True))
    assert error.is_outcome_unknown is is_unknown
    assert ("nothing was enqueued" in str(error)) is not is_unknown
