"""Workers for the length of a block: `async with working():`, as `faena worker` would serve."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from faena import Faena, Worker

Working = Callable[..., AbstractAsyncContextManager[Worker]]


@asynccontextmanager
async def serving(app: Faena) -> AsyncGenerator[Worker]:
    """A worker for all queues of an app, stopped with the block."""
    worker = await app.worker()
    running = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        await running
