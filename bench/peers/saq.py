"""SAQ on its Redis queue; finished jobs are deleted (ttl -1)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from saq import Queue, Worker

from bench.peers.protocol import QUEUE, Payload, Producer, fan_out, perform, run

SLOTS = 20
CONNECTIONS = 32


async def task(_context: Any, *, payload: Payload) -> None:
    """SAQ passes its context first and arguments by keyword."""
    await perform(payload)


@asynccontextmanager
async def connect(url: str) -> AsyncGenerator[Producer]:
    """No bulk call exists on Redis: singles side by side."""
    queue = Queue.from_url(url, name=QUEUE, max_concurrent_ops=CONNECTIONS)

    async def enqueue(payload: Payload) -> None:
        await queue.enqueue("task", payload=payload, ttl=-1)

    async def enqueue_many(payloads: list[Payload]) -> None:
        await fan_out(enqueue, payloads, CONNECTIONS)

    await queue.connect()
    try:
        yield Producer(enqueue, enqueue_many)
    finally:
        await queue.disconnect()


async def serve(url: str, slots: int) -> None:
    """Queue and worker must be made inside the loop that runs them."""
    queue = Queue.from_url(url, name=QUEUE, max_concurrent_ops=slots)
    await queue.connect()
    await Worker(queue, functions=[task], concurrency=slots).start()


def work(url: str, slots: int | None) -> None:
    """One worker process."""
    run(serve(url, slots or SLOTS))
