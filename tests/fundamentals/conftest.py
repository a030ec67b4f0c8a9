"""What the living documentation shares: an app on a real server, and a worker for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from faena import Faena
from faena.testing import Harness, harness
from faena.worker.worker import Worker
from tests._support.valkey import Server

Working = Callable[[], AbstractAsyncContextManager[Worker]]


@pytest.fixture
async def app(valkey: Server, namespace: str) -> AsyncIterator[Faena]:
    """A program's app; a real one has its URL in FAENA_URL, or none and an embedded server."""
    app = Faena("shop", valkey.url, namespace=namespace)
    yield app
    for queue in app.queues.values():
        await queue.obliterate(force=True)
    await app.close()


@pytest.fixture
def working(app: Faena) -> Working:
    """`async with working():` has a worker serve the app's queues, as `faena worker` does."""

    @asynccontextmanager
    async def serve() -> AsyncIterator[Worker]:
        worker = await app.worker()
        running = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            worker.stop()
            await running

    return serve


@pytest.fixture
async def h(app: Faena, valkey: Server) -> AsyncIterator[Harness]:
    """The app with a clock that stands still; `await h.drain()` runs what is ready."""
    async with harness(app, url=valkey.url) as tested:
        yield tested
