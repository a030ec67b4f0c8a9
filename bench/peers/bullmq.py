"""BullMQ for Python; finished jobs are removed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from bullmq import Queue, Worker

from bench.peers.protocol import QUEUE, Payload, Producer, perform, run

SLOTS = 10
OPTIONS: Any = {"removeOnComplete": True}


async def process(job: Any, _token: str) -> None:
    """The processor of every job."""
    await perform(job.data)


@asynccontextmanager
async def connect(url: str) -> AsyncGenerator[Producer]:
    """Bulk is `addBulk`, one pipeline per call."""
    queue = Queue(QUEUE, {"connection": url})

    async def enqueue(payload: Payload) -> None:
        await queue.add("run", payload, OPTIONS)

    async def enqueue_many(payloads: list[Payload]) -> None:
        await queue.addBulk([{"name": "run", "data": p, "opts": OPTIONS} for p in payloads])

    try:
        yield Producer(enqueue, enqueue_many)
    finally:
        await queue.close()


async def serve(url: str, slots: int) -> None:
    """The worker must be made inside the loop that runs it."""
    await Worker(QUEUE, process, {"connection": url, "concurrency": slots, "autorun": False}).run()


def work(url: str, slots: int | None) -> None:
    """One worker process."""
    run(serve(url, slots or SLOTS))
