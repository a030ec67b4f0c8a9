"""faena itself, by its public API only."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from bench.peers.protocol import QUEUE, Payload, Producer, perform, run
from faena import Faena, Retain

SLOTS = 500


def build(url: str, slots: int) -> tuple[Faena, Any]:
    """Declare the one queue and the one task; finished jobs are not kept."""
    app = Faena("bench", url=url)
    queue = app.queue(QUEUE, concurrency=slots, retain=Retain(completed_count=0))

    @queue.task(name="run")
    async def task(payload: dict[str, Any]) -> None:
        await perform(payload)

    return app, task


@asynccontextmanager
async def connect(url: str) -> AsyncGenerator[Producer]:
    """Producer over `enqueue` and `enqueue_many`."""
    app, task = build(url, SLOTS)

    async def enqueue(payload: Payload) -> None:
        await task.enqueue(payload)

    async def enqueue_many(payloads: list[Payload]) -> None:
        await task.enqueue_many(payloads)

    async with app:
        yield Producer(enqueue, enqueue_many)


def work(url: str, slots: int | None) -> None:
    """One worker process."""
    app, _ = build(url, slots or SLOTS)
    run(app.run_worker(queues=[QUEUE]))
