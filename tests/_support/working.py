"""Workers for the length of a block: `async with working():`, as `faena worker` would serve."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

from faena import Faena, Worker
from faena.errors import StoreUnavailable

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


@asynccontextmanager
async def running(app: Faena, **options: Any) -> AsyncGenerator[asyncio.Task[None]]:
    """`app.run_worker` beside a block, cancelled with it."""
    task = asyncio.create_task(app.run_worker(**options))
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, StoreUnavailable):
            await task


async def obliterate(app: Faena) -> None:
    """Leave nothing of its queues, and close it."""
    for queue in app.queues.values():
        await queue.obliterate(force=True)
    await app.close()
