"""An app on a real server, and workers for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from faena import Faena
from faena.testing import Harness, harness
from tests._support.valkey import Server

Working = Callable[[], AbstractAsyncContextManager[None]]


@pytest.fixture
async def app(valkey: Server, namespace: str) -> AsyncIterator[Faena]:
    app = Faena("shop", valkey.url, namespace=namespace)
    yield app
    for queue in app.queues.values():
        await queue.obliterate(force=True)
    await app.close()


@pytest.fixture
async def h(app: Faena, valkey: Server) -> AsyncIterator[Harness]:
    async with harness(app, url=valkey.url) as tested:
        yield tested


@pytest.fixture
def working(app: Faena) -> Working:
    @asynccontextmanager
    async def serve() -> AsyncGenerator[None]:
        worker = await app.worker()
        running = asyncio.create_task(worker.run())
        try:
            yield
        finally:
            worker.stop()
            await running

    return serve
