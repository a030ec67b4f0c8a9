"""Waiting for results while the broker is away, and reading jobs that nobody can decode."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from faena import Faena, Task
from faena.errors import ResultTimeout, StoreUnavailable
from tests._support.eventually import eventually
from tests._support.valkey import Server


@pytest.fixture
def server() -> Iterator[Server]:
    with Server("appendonly yes", unix=True) as server:
        yield server


@pytest.fixture
async def app(server: Server) -> AsyncIterator[Faena]:
    async with Faena("shop", server.url) as app:
        yield app


def shouting(app: Faena) -> Task[str, str]:
    @app.queue("mail").task
    async def shout(word: str) -> str:
        return word.upper()

    return shout


async def lose_patience(app: Faena) -> None:
    """From now on, a call tries for a moment only."""
    (await app.runtime()).engine.patience_s = 0.1


async def test_a_result_is_waited_for_through_an_outage_longer_than_the_patience(
    app: Faena, server: Server
) -> None:
    shout = shouting(app)
    handle = (await shout.enqueue("hola", durability="fsynced")).handle
    waiting = asyncio.create_task(handle.result(timeout="60s"))
    await eventually(_has_asked(app, server))
    await lose_patience(app)
    server.stop()
    with pytest.raises(StoreUnavailable):
        await app.queues["mail"].counts()
    assert not waiting.done()
    server.start()
    (await app.runtime()).engine.patience_s = 5
    await app.run_worker(until_empty=True)
    assert await waiting == "HOLA"


async def test_a_result_that_an_outage_outlasts_says_why_it_is_unknown(
    app: Faena, server: Server
) -> None:
    queue = app.queue("mail")
    handle = queue.handle("there-is-no-such-job")
    await queue.counts()
    await lose_patience(app)
    server.stop()
    with pytest.raises(ResultTimeout, match="could not reach the broker") as caught:
        await handle.result(timeout="500ms")
    assert isinstance(caught.value.__cause__, StoreUnavailable)


async def test_who_waits_for_a_result_hears_that_the_app_is_closed(
    app: Faena, server: Server
) -> None:
    shout = shouting(app)
    handle = (await shout.enqueue("hola")).handle
    waiting = asyncio.create_task(handle.result())
    await eventually(_has_asked(app, server))
    await app.close()
    with pytest.raises(StoreUnavailable):
        await waiting


def _has_asked(app: Faena, server: Server) -> Callable[[], bool]:
    def check() -> bool:
        with server.client() as client:
            return bool(client.hlen(f"{app.namespace}:{{mail}}:waiters"))

    return check


@pytest.mark.parametrize("spoilt", [b"010\nnot json \xff", b"010\n{}", b"x", b""])
async def test_a_job_that_nobody_can_read_is_shown_as_unreadable(app: Faena, spoilt: bytes) -> None:
    shout = shouting(app)
    bad, good = await shout.enqueue_many(["uno", "dos"])
    engine = (await app.runtime()).engine
    await bad.handle.cancel()
    await good.handle.cancel()
    await engine.command("HSET", "mail", "specs", bad.id, spoilt)
    page = await app.queues["mail"].jobs("cancelled")
    assert [(job.id, job.is_unreadable, job.task) for job in page.jobs] == [
        (bad.id, True, ""),
        (good.id, False, "shout"),
    ]
    view = await bad.handle.view()
    assert view is not None
    assert bytes(view.payload) == b"null"
