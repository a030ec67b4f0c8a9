"""streaq; results are not kept (ttl 0)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from streaq import Worker

from bench.peers.protocol import QUEUE, Payload, Producer, perform

SLOTS = 16


def build(url: str, slots: int) -> tuple[Worker[Any], Any]:
    """Declare the worker, which is also the client, and its task."""
    worker: Worker[Any] = Worker(
        redis_url=url, queue_name=QUEUE, concurrency=slots, anyio_kwargs={"use_uvloop": True}
    )
    return worker, worker.task(name="run", ttl=0, silent=True)(perform)


@asynccontextmanager
async def connect(url: str) -> AsyncGenerator[Producer]:
    """Bulk is `enqueue_many`, one pipeline per call."""
    worker, task = build(url, SLOTS)

    async def enqueue(payload: Payload) -> None:
        await task.enqueue(payload)

    async def enqueue_many(payloads: list[Payload]) -> None:
        await worker.enqueue_many([task.enqueue(payload) for payload in payloads])

    async with worker:
        yield Producer(enqueue, enqueue_many)


def work(url: str, slots: int | None) -> None:
    """One worker process."""
    build(url, slots or SLOTS)[0].run_sync()
