"""faena's outbox by its public API: the relay, the broker and the worker, in one process."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import psycopg

from bench.peers.protocol import run
from bench.transactional.protocol import QUEUE, ROW, TASK, Transact, order, perform
from faena import Faena, Retain, Task
from faena.pg import Postgres
from faena.pg.migration import migrate

SLOTS = 500


@dataclass
class Order:
    """A payload that is checked, as users' are."""

    number: int
    customer: str
    note: str


def build(url: str) -> tuple[Faena, Postgres, Task[Order, None]]:
    """Declare the one queue and the one task; finished jobs are not kept."""
    app = Faena("bench", url=os.environ["BENCH_BROKER"])
    pg = Postgres(app, url)

    @app.queue(QUEUE, concurrency=SLOTS, retain=Retain(completed_count=0)).task(name=TASK)
    async def task(payload: Order) -> None:
        perform(payload.number)

    return app, pg, task


async def prepare(url: str) -> None:
    """Its own schema."""
    app, pg, _ = build(url)
    async with app, pg:
        await migrate(pg)
        await pg.outbox.publish()


@asynccontextmanager
async def connect(url: str) -> AsyncGenerator[Transact]:
    """Jobs go through the caller's connection."""
    _, pg, task = build(url)
    async with await psycopg.AsyncConnection.connect(url) as connection:

        async def transact(numbers: Sequence[int], at_commit: Callable[[], None]) -> None:
            async with connection.pipeline():
                await connection.execute(
                    "INSERT INTO orders (id, note) VALUES (%s, %s)", [numbers[0], ROW]
                )
                if len(numbers) == 1:
                    await pg.outbox.enqueue(connection, task, Order(**order(numbers[0])))
                else:
                    orders = [Order(**order(number)) for number in numbers]
                    await pg.outbox.enqueue_many(connection, task, orders)
            at_commit()
            await connection.commit()

        yield transact


def work(url: str) -> None:
    """One worker process."""
    app, _, _ = build(url)
    run(app.run_worker(queues=[QUEUE]))
