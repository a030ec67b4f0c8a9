"""Faena inside a web application: the lifespan protocol spoken by hand, requests through httpx."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from faena import Faena, Job
from faena.contrib.starlette import lifespan
from faena.errors import ConfigError
from faena.worker.options import WorkerOptions
from tests._support.valkey import Server, free_port
from tests._support.working import obliterate

Message = dict[str, Any]


class Host:
    """What an ASGI server does around requests."""

    def __init__(self, web: Any) -> None:
        self._web = web
        self._inbox: asyncio.Queue[Message] = asyncio.Queue()
        self._outbox: asyncio.Queue[Message] = asyncio.Queue()
        self._state: dict[str, Any] = {}
        self._serving: asyncio.Task[None] | None = None

    async def say(self, word: str) -> Message:
        """Send lifespan.startup or lifespan.shutdown and hear the answer."""
        if self._serving is None:
            scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": self._state}
            application = self._web(scope, self._inbox.get, self._outbox.put)
            self._serving = asyncio.create_task(application)
        await self._inbox.put({"type": f"lifespan.{word}"})
        return await self._outbox.get()

    async def ended(self) -> None:
        assert self._serving is not None
        await asyncio.wait([self._serving])
        self._serving.exception()

    async def cancel(self) -> None:
        """Be in a hurry."""
        assert self._serving is not None
        self._serving.cancel()
        await asyncio.wait([self._serving])

    @asynccontextmanager
    async def up(self) -> AsyncIterator[httpx.AsyncClient]:
        assert (await self.say("startup"))["type"] == "lifespan.startup.complete"
        transport = httpx.ASGITransport(self._with_state)
        async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
            yield client
        assert (await self.say("shutdown"))["type"] == "lifespan.shutdown.complete"
        await self.ended()

    async def _with_state(self, scope: Message, receive: Any, send: Any) -> None:
        await self._web({**scope, "state": dict(self._state)}, receive, send)


class Shop:
    def __init__(self, url: str, namespace: str) -> None:
        self.jobs = Faena("shop", url, namespace=namespace)
        self.mail = self.jobs.queue("mail")
        self.slow = self.jobs.queue("slow")
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.shout = self.mail.task(name="shout")(self._shout)
        self.wait = self.slow.task(name="wait")(self._wait)

    async def _shout(self, word: str) -> str:
        return word.upper()

    async def _wait(self, job: Job) -> str:
        self.begun.set()
        await self.go_on.wait()
        return f"attempt {job.attempt}"


@pytest.fixture
async def shop(valkey: Server, namespace: str) -> AsyncIterator[Shop]:
    shop = Shop(valkey.url, namespace)
    yield shop
    await obliterate(shop.jobs)


async def test_a_starlette_program_is_connected_while_it_serves(shop: Shop) -> None:
    async def order(request: Any) -> JSONResponse:
        receipt = await shop.shout.enqueue(request.path_params["word"])
        return JSONResponse({"status": receipt.status})

    web = Starlette(routes=[Route("/{word}", order)], lifespan=lifespan(shop.jobs))
    async with Host(web).up() as client:
        assert len(shop.jobs._links._runtimes) == 1
        assert (await client.get("/hola")).json() == {"status": "created"}
    assert len(shop.jobs._links._runtimes) == 0
    assert (await shop.mail.counts())["ready"] == 1


async def test_a_fastapi_program_can_work_in_its_own_process(shop: Shop) -> None:
    web = FastAPI(lifespan=lifespan(shop.jobs, worker=True))

    @web.get("/shout/{word}")
    async def order(word: str) -> str:
        receipt = await shop.shout.enqueue(word)
        return await receipt.handle.result(timeout="60s")

    async with Host(web).up() as client:
        assert (await client.get("/shout/hola")).json() == "HOLA"


async def test_a_lifespan_of_ones_own_runs_inside_and_its_state_is_passed_on(shop: Shop) -> None:
    seen: list[str] = []

    @asynccontextmanager
    async def mine(_web: FastAPI) -> AsyncIterator[dict[str, str]]:
        seen.append(f"connected: {len(shop.jobs._links._runtimes) == 1}")
        yield {"greeting": "hola"}
        seen.append(f"still connected: {len(shop.jobs._links._runtimes) == 1}")

    web = FastAPI(lifespan=lifespan(shop.jobs, inner=mine))

    @web.get("/")
    async def greet(request: Request) -> str:
        return request.state.greeting

    async with Host(web).up() as client:
        assert (await client.get("/")).json() == "hola"
    assert seen == ["connected: True", "still connected: True"]


async def test_a_running_job_ends_before_the_shutdown_does(shop: Shop) -> None:
    web = FastAPI(lifespan=lifespan(shop.jobs, worker=True))
    host = Host(web)
    await host.say("startup")
    receipt = await shop.wait.enqueue()
    await shop.begun.wait()
    stopping = asyncio.create_task(host.say("shutdown"))
    await asyncio.wait([stopping], timeout=0.1)
    assert not stopping.done()
    shop.go_on.set()
    assert (await stopping)["type"] == "lifespan.shutdown.complete"
    await host.ended()
    assert await receipt.handle.result(timeout="60s") == "attempt 1"


async def test_a_job_that_does_not_end_in_time_goes_back_with_its_attempts(shop: Shop) -> None:
    web = FastAPI(lifespan=lifespan(shop.jobs, worker=WorkerOptions(grace="50ms")))
    host = Host(web)
    await host.say("startup")
    receipt = await shop.wait.enqueue()
    await shop.begun.wait()
    assert (await host.say("shutdown"))["type"] == "lifespan.shutdown.complete"
    await host.ended()
    view = await receipt.handle.view()
    assert view is not None
    assert (view.state, view.attempts_made) == ("ready", 0)


async def test_a_shutdown_that_is_cut_short_hands_running_jobs_back_first(shop: Shop) -> None:
    host = Host(FastAPI(lifespan=lifespan(shop.jobs, worker=WorkerOptions(grace="1h"))))
    await host.say("startup")
    receipt = await shop.wait.enqueue()
    await shop.begun.wait()
    stopping = asyncio.create_task(host.say("shutdown"))
    await asyncio.wait([stopping], timeout=0.1)
    await host.cancel()
    stopping.cancel()
    view = await receipt.handle.view()
    assert view is not None
    assert (view.state, view.attempts_made) == ("ready", 0)


async def test_only_the_named_queues_are_served(shop: Shop) -> None:
    web = FastAPI(lifespan=lifespan(shop.jobs, worker=True, queues=[shop.mail]))
    async with Host(web).up():
        await shop.wait.enqueue()
        receipt = await shop.shout.enqueue("hola")
        assert await receipt.handle.result(timeout="60s") == "HOLA"
        assert (await shop.slow.counts())["ready"] == 1


async def test_a_broker_that_cannot_be_reached_fails_the_start() -> None:
    jobs = Faena("shop", f"redis://127.0.0.1:{free_port()}")
    host = Host(FastAPI(lifespan=lifespan(jobs)))
    answer = await host.say("startup")
    assert answer["type"] == "lifespan.startup.failed"
    assert "could not reach the broker" in answer["message"]
    await host.ended()
    await jobs.close()


async def test_a_worker_for_an_unknown_queue_fails_the_start(shop: Shop) -> None:
    host = Host(FastAPI(lifespan=lifespan(shop.jobs, worker=True, queues=["mial"])))
    answer = await host.say("startup")
    assert answer["type"] == "lifespan.startup.failed"
    assert "did you mean 'mail'?" in answer["message"]
    await host.ended()


def test_queues_without_a_worker_are_a_slip() -> None:
    with pytest.raises(ConfigError, match="queues must be given with worker=True"):
        lifespan(Faena("shop", "redis://localhost"), queues=["mail"])
