"""RQ with its SimpleWorker, which runs jobs in its own process instead of forking for each."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from redis import Redis
from rq import Queue, SimpleWorker

from bench.peers.protocol import QUEUE, Payload, Producer, perform_blocking


@asynccontextmanager
async def connect(url: str) -> AsyncGenerator[Producer]:
    """Bulk is `enqueue_many`, one pipeline per call; results are deleted at once (result_ttl 0)."""
    queue = Queue(QUEUE, connection=Redis.from_url(url))

    async def enqueue(payload: Payload) -> None:
        queue.enqueue(perform_blocking, args=(payload,), result_ttl=0, description="run")

    async def enqueue_many(payloads: list[Payload]) -> None:
        queue.enqueue_many(
            [
                Queue.prepare_data(
                    perform_blocking, args=(payload,), result_ttl=0, description="run"
                )
                for payload in payloads
            ]
        )

    yield Producer(enqueue, enqueue_many)


def work(url: str, slots: int | None) -> None:
    """One process runs one job at a time, whatever concurrency is asked for."""
    connection = Redis.from_url(url)
    worker = SimpleWorker([Queue(QUEUE, connection=connection)], connection=connection)
    worker.log_job_description = False
    worker.work(logging_level="ERROR")
