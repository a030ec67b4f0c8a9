"""arq; results are not kept, and the queue is polled every 10 ms instead of every 500 ms.

With its default poll arq drains at most `max_jobs` jobs per half second, which would measure a
timer; the price of the short poll shows in the idle figure.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import uvloop
from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker

from bench.peers.protocol import QUEUE, Payload, Producer, fan_out, perform

SLOTS = 100
POLL_S = 0.01


async def task(_context: Any, payload: Payload) -> None:
    """arq passes its context first."""
    await perform(payload)


@asynccontextmanager
async def connect(url: str) -> AsyncGenerator[Producer]:
    """No bulk call exists: singles side by side."""
    pool = await create_pool(RedisSettings.from_dsn(url), default_queue_name=QUEUE)

    async def enqueue(payload: Payload) -> None:
        await pool.enqueue_job("task", payload)

    async def enqueue_many(payloads: list[Payload]) -> None:
        await fan_out(enqueue, payloads)

    try:
        yield Producer(enqueue, enqueue_many)
    finally:
        await pool.aclose()


def work(url: str, slots: int | None) -> None:
    """One worker process."""
    asyncio.set_event_loop(uvloop.new_event_loop())
    Worker(
        functions=[task],
        queue_name=QUEUE,
        redis_settings=RedisSettings.from_dsn(url),
        max_jobs=slots or SLOTS,
        keep_result=0,
        poll_delay=POLL_S,
        log_results=False,
    ).run()
