"""huey on its plain Redis list, with threads; results are off."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from huey import RedisHuey

from bench.peers.protocol import QUEUE, Payload, Producer, perform_blocking

SLOTS = 4


def build(url: str) -> tuple[RedisHuey, Any]:
    """Declare the queue and its task."""
    huey = RedisHuey(QUEUE, url=url, results=False)
    return huey, huey.task(name="run")(perform_blocking)


@asynccontextmanager
async def connect(url: str) -> AsyncGenerator[Producer]:
    """No bulk call exists, and threads made it slower: singles in a loop."""
    _, task = build(url)

    async def enqueue(payload: Payload) -> None:
        task(payload)

    async def enqueue_many(payloads: list[Payload]) -> None:
        for payload in payloads:
            task(payload)

    yield Producer(enqueue, enqueue_many)


def work(url: str, slots: int | None) -> None:
    """One consumer process; its scheduler thread stays, as in any deployment."""
    huey, _ = build(url)
    huey.create_consumer(workers=slots or SLOTS, periodic=False, worker_type="thread").run()
