"""pgqueuer on asyncpg: workers fetch jobs in batches, and log in batches that they are done."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import asyncpg
from pgqueuer import Job, PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

from bench.peers.protocol import run
from bench.transactional.protocol import ROW, TASK, Transact, order, perform

BATCH = int(os.environ.get("BENCH_BATCH", "500"))


async def prepare(url: str) -> None:
    """Its own schema."""
    connection = await asyncpg.connect(url)
    await Queries(AsyncpgDriver(connection)).install()
    await connection.close()


@asynccontextmanager
async def connect(url: str) -> AsyncGenerator[Transact]:
    """Jobs go through the caller's connection, many of them by lists."""
    connection = await asyncpg.connect(url)
    queries = Queries(AsyncpgDriver(connection))

    async def transact(numbers: Sequence[int], at_commit: Callable[[], None]) -> None:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute("INSERT INTO orders (id, note) VALUES ($1, $2)", numbers[0], ROW)
        if len(numbers) == 1:
            await queries.enqueue(TASK, json.dumps(order(numbers[0])).encode())
        else:
            payloads = [json.dumps(order(number)).encode() for number in numbers]
            await queries.enqueue([TASK] * len(numbers), payloads, [0] * len(numbers))
        at_commit()
        await transaction.commit()

    try:
        yield transact
    finally:
        await connection.close()


def work(url: str) -> None:
    """One worker process."""

    async def serve() -> None:
        queuer = PgQueuer(AsyncpgDriver(await asyncpg.connect(url)))

        @queuer.entrypoint(TASK)
        async def task(job: Job) -> None:
            perform(json.loads(job.payload or b"")["number"])

        await queuer.run(batch_size=BATCH, dequeue_timeout=timedelta(seconds=30))

    run(serve())
