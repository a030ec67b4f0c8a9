"""Two programs declare one queue, of which only one has its handlers: neither undoes the other."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from faena import Death, Faena, Limit, Retain, Retry
from faena.errors import JobNotFound
from tests._support.batch_queue import working
from tests._support.eventually import eventually
from tests._support.valkey import Server

CONF = "mailing:{mail}:conf"


@pytest.fixture
def told() -> list[str]:
    return []


def mailing(server: Server, *, has_handlers: bool, told: list[str]) -> Faena:
    """The queue `mail` in a program that works, with a hook and a cost, or in one that enqueues."""
    app = Faena("mailing", server.url)
    queue = app.queue(
        "mail", retry=Retry.never(), limits=[Limit("9000/min", cost="tokens")], lease="20s"
    )
    if not has_handlers:
        queue.task(name="send")(_absent)
        return app

    @queue.task(cost={"tokens": 3})
    async def send(word: str) -> None:
        raise LookupError(word)

    @send.on_dead
    async def tell(death: Death) -> None:
        told.append(await death.payload())

    return app


async def _absent(word: str) -> None: ...


@pytest.fixture
async def worker(server: Server, told: list[str]) -> AsyncIterator[Faena]:
    async with mailing(server, has_handlers=True, told=told) as app:
        yield app


@pytest.fixture
async def producer(server: Server, told: list[str]) -> AsyncIterator[Faena]:
    async with mailing(server, has_handlers=False, told=told) as app:
        yield app


async def send(app: Faena, word: str) -> None:
    assert (await app.queues["mail"].tasks["send"].enqueue(word)).is_accepted


def settings(server: Server) -> dict[bytes, bytes]:
    with server.client() as client:
        return client.hgetall(CONF)


@pytest.mark.parametrize("loss", ["the data", "the queue"])
async def test_hooks_and_costs_are_there_again_when_a_producer_is_the_first_after_a_loss(
    server: Server, worker: Faena, producer: Faena, told: list[str], loss: str
) -> None:
    async with working(worker):
        await send(producer, "before")
        await eventually(lambda: told == ["before"])
        before = settings(server)
        if loss == "the queue":
            await producer.queues["mail"].obliterate(force=True)
        else:
            with server.client() as client:
                client.flushall()
        await send(producer, "after")
        await eventually(lambda: told == ["before", "after"])
    assert settings(server) == before
    assert before["cost:send"] == "tokens:3"


async def test_a_producer_that_declares_later_takes_nothing_back(
    server: Server, worker: Faena, producer: Faena, told: list[str]
) -> None:
    async with working(worker):
        await send(worker, "own")
        await eventually(lambda: told == ["own"])
        before = settings(server)
        await send(producer, "other")
        await eventually(lambda: told == ["own", "other"])
    assert settings(server) == before


async def test_a_job_that_was_enqueued_before_any_worker_came_has_its_hook(
    worker: Faena, producer: Faena, told: list[str]
) -> None:
    await send(producer, "early")
    async with working(worker):
        await eventually(lambda: told == ["early"])


async def test_what_another_program_declared_otherwise_is_logged_once(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def use(**options: Any) -> str:
        caplog.clear()
        async with Faena("mailing", server.url) as app:
            task = app.queue("mail", **options).task(name="send")(_absent)
            await task.enqueue("a", tenant="t")
            await task.enqueue("b", tenant="t")
        return caplog.text

    assert await use(limits=[Limit("5/s")]) == ""
    assert await use(limits=[Limit("5/s")]) == ""
    said = await use(limits=[Limit("9/s")], order="tenant", retain=Retain(completed="1h"))
    assert said.count("queue mail was declared with different options before") == 1
    assert {"limits", "order", "fair", "retain"} <= set(re.findall(r"\w+", said))
    assert "learning" not in said


async def test_what_was_edited_is_not_told_as_another_declaration(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async with Faena("mailing", server.url) as app:
        await app.queue("mail", max_running=3).configure(max_running=9)
    async with Faena("mailing", server.url) as app:
        await app.queue("mail", max_running=3).task(name="send")(_absent).enqueue("a")
    assert "different options" not in caplog.text


async def test_operators_of_another_program_impose_no_settings(server: Server) -> None:
    async with Faena("mailing", server.url) as app:
        task = app.queue("mail", limits=[Limit("5/s")]).task(name="send")(_absent)
        receipt = await task.enqueue("a", delay="1h")
        before = settings(server)
        async with Faena("mailing", server.url) as other:
            handle = other.queue("mail", limits=[Limit("99/s")]).handle(receipt.id)
            await handle.promote()
            await handle.cancel()
            await handle.rerun()
            with pytest.raises(JobNotFound):
                await other.dead_letters.retry_as_new("mail", "nope")
    assert settings(server) == before


async def test_a_reset_is_not_told_as_another_declaration(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async with Faena("mailing", server.url) as app:
        queue = app.queue("mail", limits=[Limit("5/s")])
        await queue.task(name="send")(_absent).enqueue("a")
        await queue.configure(limits=[Limit("7/s")])
        await queue.reset("limits")
    assert caplog.text == ""
