"""An app with two queues on a server of the module, and a worker for both."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from faena import Faena
from tests._support.valkey import Server

Working = Callable[..., AbstractAsyncContextManager[None]]


@pytest.fixture
async def app(server: Server, request: pytest.FixtureRequest) -> AsyncIterator[Faena]:
    app = Faena("flows", server.url, namespace=f"flows{abs(hash(request.node.nodeid)) % 10**9}")
    yield app
    await app.close()


@pytest.fixture
def working() -> Working:
    """Runs a worker of an app for the length of a block."""

    @contextlib.asynccontextmanager
    async def work(app: Faena, **options: Any) -> AsyncIterator[None]:
        task = asyncio.create_task(app.run_worker(**options))
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    return work
