"""Faena in a Starlette or FastAPI program.

    app = FastAPI(lifespan=lifespan(jobs))                        # connect, and close at the end
    app = FastAPI(lifespan=lifespan(jobs, worker=True))           # … and work in the same process
    app = FastAPI(lifespan=lifespan(jobs, inner=my_lifespan))     # … around a lifespan of one's own

    app = FastAPI(…, exception_handlers=exception_handlers())     # errors as answers
    app.mount("/jobs", router(jobs, tasks=[send], authorize=authorize, tenant=tenant_of))

A broker that cannot be reached stops the start-up, so that a deployment notices. At shutdown no job
is lost and no attempt spent: running jobs end, or go back to the queue after the worker's grace.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

from faena.app import Faena
from faena.contrib.problem import exception_handlers
from faena.contrib.router import router
from faena.errors import ConfigError
from faena.queue import Queue
from faena.worker.options import WorkerOptions
from faena.worker.worker import Worker

__all__ = ["exception_handlers", "lifespan", "router"]

Web = TypeVar("Web")

State = Mapping[str, Any] | None
"""What a lifespan hands to every request."""

Lifespan = Callable[[Web], AbstractAsyncContextManager[State]]

_log = logging.getLogger("faena.contrib")


def lifespan(
    app: Faena,
    *,
    worker: bool | WorkerOptions = False,
    queues: Iterable[Queue | str] | None = None,
    inner: Lifespan[Web] | None = None,
) -> Lifespan[Web]:
    """A lifespan that keeps `app` connected while the web application serves.

    `worker` runs a worker in the server's own event loop, for `queues` or for all: for small
    programs and development, since a busy handler delays requests. `inner` is a lifespan of the
    program's own: it starts after the connection, ends before it, and its state is passed on.
    """
    if queues is not None and worker is False:
        raise ConfigError(
            "queues must be given with worker=True, got queues without it", field="queues"
        )
    served = None if queues is None else tuple(queues)

    @asynccontextmanager
    async def around(web: Web) -> AsyncGenerator[State]:
        async with app, _working(app, worker, served), _inner(inner, web) as state:
            yield state

    return around


@asynccontextmanager
async def _inner(inner: Lifespan[Web] | None, web: Web) -> AsyncGenerator[State]:
    if inner is None:
        yield None
    else:
        async with inner(web) as state:
            yield state


@asynccontextmanager
async def _working(
    app: Faena, worker: bool | WorkerOptions, queues: Iterable[Queue | str] | None
) -> AsyncGenerator[None]:
    if worker is False:
        yield
        return
    options = None if worker is True else worker
    serving = await app.worker(queues, options)
    running = asyncio.create_task(serving.run())
    running.add_done_callback(_log_failure)
    try:
        yield
    finally:
        await _end(serving, running)


def _log_failure(running: asyncio.Task[None]) -> None:
    """A worker that breaks while requests are served is not noticed before the shutdown."""
    if not running.cancelled() and running.exception() is not None:
        _log.error("the worker failed; requests are still served", exc_info=running.exception())


async def _end(serving: Worker, running: asyncio.Task[None]) -> None:
    """Stop gracefully; when the server is in a hurry itself, hand running jobs back at once."""
    serving.stop()
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        serving.stop()
        await running
        raise
