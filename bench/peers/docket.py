"""docket (pydocket); finished executions are not kept (execution_ttl 0).

A full worker sleeps for its check interval before it looks for work again, so the default of 250 ms
would measure a timer: 10 ms is used, and its price shows in the idle figure. Every running task may
hold a connection, and redis-py stops at 100 unless told otherwise.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

from docket import Docket, Worker

from bench.peers.protocol import QUEUE, Payload, Producer, perform, run

SLOTS = 100
CHECK = timedelta(milliseconds=10)
CONNECTIONS = 300


def build(url: str) -> Docket:
    """Declare the docket and its task."""
    docket = Docket(
        name=QUEUE, url=f"{url}?max_connections={CONNECTIONS}", execution_ttl=timedelta(0)
    )
    docket.register(perform)
    return docket


@asynccontextmanager
async def connect(url: str) -> AsyncGenerator[Producer]:
    """Bulk is `add_many`, one pipeline per call."""
    async with build(url) as docket:

        async def enqueue(payload: Payload) -> None:
            await docket.add(perform)(payload)

        async def enqueue_many(payloads: list[Payload]) -> None:
            await docket.add_many([docket.call(perform)(payload) for payload in payloads])

        yield Producer(enqueue, enqueue_many)


async def serve(url: str, slots: int) -> None:
    """Run the worker until the process is killed."""
    async with (
        build(url) as docket,
        Worker(docket, concurrency=slots, minimum_check_interval=CHECK) as worker,
    ):
        await worker.run_forever()


def work(url: str, slots: int | None) -> None:
    """One worker process."""
    run(serve(url, slots or SLOTS))
