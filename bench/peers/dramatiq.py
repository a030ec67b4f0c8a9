"""Dramatiq on Redis with its default middleware; it stores no results unless asked to."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import dramatiq
from dramatiq import Worker
from dramatiq.brokers.redis import RedisBroker

from bench.peers.protocol import QUEUE, Payload, Producer, perform_blocking

SLOTS = 64


def build(url: str) -> tuple[RedisBroker, Any]:
    """Declare the broker and its actor."""
    broker = RedisBroker(url=url)
    dramatiq.set_broker(broker)
    return broker, dramatiq.actor(perform_blocking, actor_name="run", queue_name=QUEUE)


@asynccontextmanager
async def connect(url: str) -> AsyncGenerator[Producer]:
    """No bulk call exists, and threads made it slower: singles in a loop."""
    _, actor = build(url)

    async def enqueue(payload: Payload) -> None:
        actor.send(payload)

    async def enqueue_many(payloads: list[Payload]) -> None:
        for payload in payloads:
            actor.send(payload)

    yield Producer(enqueue, enqueue_many)


def work(url: str, slots: int | None) -> None:
    """What `dramatiq --processes 1` runs, without its supervisor process."""
    broker, _ = build(url)
    Worker(broker, worker_threads=slots or SLOTS).start()
    threading.Event().wait()
