"""One worker process: what it serves, its connection, its end.

Options of the command line take precedence over the app's pool. The process always exits when its
work has ended, even if a handler's thread never returns or a coroutine ignores its cancellation.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Final

from faena.app import Faena
from faena.cli.app_lookup import find_queue
from faena.errors import ConfigError, nearest
from faena.limits import Limit
from faena.pool import Pool
from faena.values.duration import Duration
from faena.worker.options import WorkerOptions
from faena.worker.serve.address import ServeAddress
from faena.worker.serve.reporting import reporting
from faena.worker.serve.server_thread import serving_at
from faena.worker.supervise.lifeline import Lifeline
from faena.worker.supervise.signals import handling, stopping
from faena.worker.supervise.worker_process import OVER_MEMORY
from faena.worker.worker import Worker

_END_WITHIN_S: Final = 5.0

_log = logging.getLogger("faena.worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Options of the command line and the environment; None: the pool's or the app's."""

    pool: str | None
    queues: tuple[str, ...] | None
    name: str | None
    concurrency: int | None
    memory: int | None
    serves: str | None
    rate: Limit | None
    grace: Duration
    stuck: Duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a worker process does."""

    queues: tuple[str, ...]
    instances: int
    """The number of processes of its pool."""
    options: WorkerOptions


def make_plan(app: Faena, given: Given, *, is_supervised: bool) -> Plan:
    """Add missing values from the pool, or from the whole app."""
    pool = None if given.pool is None else _pool(app, given.pool)
    queues = given.queues or (pool.queues if pool else tuple(app.queues))
    for queue in queues:
        find_queue(app, queue)
    options = WorkerOptions(
        concurrency=given.concurrency or (pool.concurrency if pool else None),
        memory_limit=given.memory or (pool.memory_bytes if pool else None),
        grace=given.grace,
        stuck=given.stuck,
        rate=given.rate,
        serves=given.serves or (pool.serves if pool else "all"),
        leaves_when_stuck=True,
    )
    if given.name is not None:
        own = f"{given.name}-{os.getpid()}" if is_supervised else given.name
        options = replace(options, name=own)
    return Plan(queues=queues, instances=pool.instances if pool else 1, options=options)


def _pool(app: Faena, name: str) -> Pool:
    if name not in app.pools:
        hint = nearest(name, app.pools) if app.pools else "it declares none"
        raise ConfigError(f"no pool {name!r} in app {app.name}; {hint}", field="pool", value=name)
    return app.pools[name]


@dataclass(frozen=True, slots=True)
class Ties:
    """What a worker process is tied to beside its broker."""

    line: Lifeline | None = None
    """To its supervisor."""
    reports: socket.socket | None = None
    """To the server of its supervisor, if that serves."""
    address: ServeAddress | None = None
    """Where this process itself answers over HTTP."""


def run(app: Faena, plan: Plan, ties: Ties) -> int:
    """Serve until a signal; returns the process's exit code."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_serve(app, plan, ties))


def _loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - not available on every system
    except ImportError:
        return None
    return uvloop.Loop


async def _serve(app: Faena, plan: Plan, ties: Ties) -> int:
    """Handles signals to the end, so that a late one does not change the exit code."""
    code, line = 1, ties.line
    async with contextlib.AsyncExitStack() as parts:
        try:
            server = await parts.enter_async_context(serving_at(ties.address))
            if not await _reach(app):
                code = 0
                return code
            worker = await app.worker(plan.queues, plan.options)
            if server is not None:
                server.watch(worker)
            parts.enter_context(handling(stopping(worker.stop, is_supervised=line is not None)))
            parts.enter_context(_tied(worker, line, plan, await app.broker()))
            end = ties.reports if server is None else server.end
            async with reporting(app, worker, end):
                await worker.run()
            code = OVER_MEMORY if worker.is_over_memory else 0
        finally:
            _end_for_sure(code)
            await app.close()
    return code


async def _reach(app: Faena) -> bool:
    """Wait for the broker; False when a signal ended the wait."""
    waiting = asyncio.ensure_future(app.await_broker())

    def stop() -> None:
        waiting.cancel()

    with handling({signal.SIGTERM: stop, signal.SIGINT: stop}):
        await asyncio.wait([waiting])
    if not waiting.cancelled():
        waiting.result()
    return not waiting.cancelled()


@contextlib.contextmanager
def _tied(worker: Worker, line: Lifeline | None, plan: Plan, broker: str) -> Generator[None]:
    """Report when the worker serves; stop it when its supervisor has died."""

    def hurry() -> None:
        worker.stop()
        worker.stop()

    def lost() -> None:
        _log.warning("the supervisor has died: finishing")
        worker.stop()

    async def report() -> None:
        await worker.serving.wait()
        name, queues = plan.options.name, ", ".join(plan.queues)
        _log.info("worker %s serves %s at %s", name, queues, broker)
        if line is not None:
            line.report_serving(plan.instances)

    if line is not None:
        line.watch(on_hurry=hurry, on_lost=lost)
    reporting = asyncio.create_task(report())
    try:
        yield
    finally:
        reporting.cancel()


def _end_for_sure(code: int) -> None:
    """Exit within a few seconds, whatever still runs in the process."""
    ending = threading.Timer(_END_WITHIN_S, os._exit, (code,))
    ending.daemon = True
    ending.start()
