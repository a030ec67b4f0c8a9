"""procrastinate: jobs are rows that workers fetch one by one; finished ones are deleted."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

import procrastinate
import psycopg

from bench.peers.protocol import run
from bench.transactional.protocol import QUEUE, ROW, TASK, Transact, order, perform

SLOTS = int(os.environ.get("BENCH_SLOTS", "20"))


def build(url: str) -> procrastinate.App:
    """Declare the one task."""
    connector = procrastinate.PsycopgConnector(conninfo=url, min_size=SLOTS, max_size=SLOTS)
    app = procrastinate.App(connector=connector)

    @app.task(name=TASK, queue=QUEUE)
    async def task(number: int, customer: str, note: str) -> None:
        perform(number)

    return app


async def prepare(url: str) -> None:
    """Its own schema."""
    app = build(url)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


@asynccontextmanager
async def connect(url: str) -> AsyncGenerator[Transact]:
    """Jobs go through the caller's connection, many of them by `batch_defer`."""
    app = build(url)
    async with app.open_async(), await psycopg.AsyncConnection.connect(url) as connection:
        task = app.tasks[TASK]

        async def transact(numbers: Sequence[int], at_commit: Callable[[], None]) -> None:
            into = task.configure(connection=connection)
            async with connection.pipeline():
                await connection.execute(
                    "INSERT INTO orders (id, note) VALUES (%s, %s)", [numbers[0], ROW]
                )
                if len(numbers) == 1:
                    await into.defer_async(**order(numbers[0]))
                else:
                    await into.batch_defer_async(*map(order, numbers))
            at_commit()
            await connection.commit()

        yield transact


def work(url: str) -> None:
    """One worker process."""

    async def serve() -> None:
        app = build(url)
        async with app.open_async():
            await app.run_worker_async(
                queues=[QUEUE], concurrency=SLOTS, delete_jobs="always", listen_notify=True
            )

    run(serve())
