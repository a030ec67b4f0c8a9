"""Processes that work or store a history, to be killed at will or at a given step."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import msgspec
import psycopg

from faena import Faena, Retain, Task
from faena.engine import Engine
from faena.pg import History, Postgres

NOTHING = Retain(completed_count=0, dead_count=0, cancelled_count=0)


class HistoryPlan(msgspec.Struct):
    """What a test and its processes agree on."""

    url: str
    namespace: str
    database: str


def history_app(plan: HistoryPlan) -> tuple[Faena, Postgres, Task[int, int]]:
    """The broker keeps no job that has ended; each tells its number."""
    app = Faena("shop", plan.url, namespace=plan.namespace)
    pg = Postgres(app, plan.database, relay=False, history=History(payloads=True))

    @app.queue("work", retain=NOTHING, lease="2s", max_deliveries=50, concurrency=10).task
    async def double(number: int) -> int:
        await asyncio.sleep(0.01)
        return 2 * number

    return app, pg, double


def work(plan: HistoryPlan) -> None:
    """A worker, which also stores the history."""
    app, _, _ = history_app(plan)
    asyncio.run(app.run_worker())


def read_until(plan: HistoryPlan, fatal: int) -> None:
    """Store once, and die before the n-th statement, script or command."""
    seen = 0

    def step() -> None:
        nonlocal seen
        seen += 1
        if seen == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    _count(psycopg.AsyncConnection, "execute", step)
    _count(Engine, "command", step)
    _count(Engine, "ask", step)

    async def read() -> None:
        app, pg, _ = history_app(plan)
        async with pg:
            await pg.history.read_now()
        await app.close()

    asyncio.run(read())


def _count(kind: Any, name: str, step: Any) -> None:
    original = getattr(kind, name)

    def counted(self: Any, *args: Any, **options: Any) -> Any:
        step()
        return original(self, *args, **options)

    setattr(kind, name, counted)
