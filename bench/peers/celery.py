"""Celery on Redis: results, events, gossip, mingle and worker heartbeats are off."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from celery import Celery

from bench.peers.protocol import QUEUE, Payload, Producer, perform_blocking

PREFETCH = 500


def build(url: str) -> tuple[Celery, Any]:
    """Declare the app and its task."""
    app = Celery(QUEUE, broker=url)
    app.conf.update(
        task_default_queue=QUEUE,
        task_ignore_result=True,
        worker_send_task_events=False,
        worker_hijack_root_logger=False,
        broker_connection_retry_on_startup=True,
    )
    return app, app.task(name="run")(perform_blocking)


@asynccontextmanager
async def connect(url: str) -> AsyncGenerator[Producer]:
    """No bulk call exists: singles over one held producer connection."""
    app, task = build(url)
    with app.producer_pool.acquire(block=True) as channel:

        async def enqueue(payload: Payload) -> None:
            task.apply_async((payload,), producer=channel)

        async def enqueue_many(payloads: list[Payload]) -> None:
            for payload in payloads:
                task.apply_async((payload,), producer=channel)

        yield Producer(enqueue, enqueue_many)


def work(url: str, slots: int | None) -> None:
    """One process: the solo pool when one job at a time is fastest, else threads."""
    app, _ = build(url)
    app.conf.worker_prefetch_multiplier = 4 if slots else PREFETCH
    pool = ["--pool=threads", f"--concurrency={slots}"] if slots else ["--pool=solo"]
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=ERROR"]
    app.worker_main(["worker", *pool, *quiet])
