"""taskiq on its Redis stream broker, the one that acknowledges jobs; no result backend."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from taskiq import AsyncTaskiqDecoratedTask
from taskiq.api import run_receiver_task
from taskiq_redis import RedisStreamBroker

from bench.peers.protocol import QUEUE, Payload, Producer, fan_out, perform, run

SLOTS = 100
CONNECTIONS = 200
READ = 500


def build(url: str) -> tuple[RedisStreamBroker, AsyncTaskiqDecoratedTask[Any, Any]]:
    """Declare the broker and its task; the group reads from the start of the stream."""
    broker = RedisStreamBroker(
        url,
        queue_name=QUEUE,
        consumer_id="0",
        xread_count=READ,
        max_connection_pool_size=CONNECTIONS,
    )
    return broker, broker.register_task(perform, task_name="run")


@asynccontextmanager
async def connect(url: str) -> AsyncGenerator[Producer]:
    """No bulk call exists: singles side by side."""
    broker, task = build(url)

    async def enqueue(payload: Payload) -> None:
        await task.kiq(payload)

    async def enqueue_many(payloads: list[Payload]) -> None:
        await fan_out(enqueue, payloads)

    await broker.startup()
    try:
        yield Producer(enqueue, enqueue_many)
    finally:
        await broker.shutdown()


def work(url: str, slots: int | None) -> None:
    """What `taskiq worker --workers 1 --no-parse` runs, without its supervisor process."""
    broker, _ = build(url)
    slots = slots or SLOTS
    run(
        run_receiver_task(
            broker,
            run_startup=True,
            validate_params=False,
            max_async_tasks=slots,
            max_prefetch=slots,
        )
    )
