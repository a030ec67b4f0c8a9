"""An app with a clock that tests move, and one whose workers live in real time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime

import pytest

from faena import Faena
from faena.testing import Harness, harness
from tests._support.valkey import Server

Working = Callable[..., AbstractAsyncContextManager[None]]

START = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
async def app(valkey: Server, namespace: str) -> AsyncIterator[Faena]:
    app = Faena("shop", valkey.url, namespace=namespace)
    yield app
    for queue in app.queues.values():
        await queue.obliterate(force=True)
    await app.close()


@pytest.fixture
async def h(app: Faena, valkey: Server) -> AsyncIterator[Harness]:
    async with harness(app, url=valkey.url, start=START) as tested:
        yield tested


@pytest.fixture
def working(app: Faena) -> Working:
    @asynccontextmanager
    async def serve(served: Faena = app) -> AsyncGenerator[None]:
        worker = await served.worker()
        running = asyncio.create_task(worker.run())
        try:
            yield
        finally:
            worker.stop()
            await running

    return serve


async def look(app: Faena) -> int | None:
    """Fire what is due, as a worker does; returns when something is due next."""
    return await (await app.schedules.scheduler(list(app.queues))).run_once()


async def ids(h: Harness) -> list[str]:
    return [job.id for job in await h.jobs()]
