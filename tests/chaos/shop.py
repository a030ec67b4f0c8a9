"""The program under chaos: three queues whose handlers write down what they do.

A job's id says everything a verdict needs: `<queue>.<key>.<number>-<planned failures>`. Nothing but
the public API is used, and nothing is read back from the engine.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import msgspec

from faena import Faena, Job, Limit, Order, Retain, Retry
from tests._support.ledger import Ledger

LEASE_S = 5
ATTEMPTS = 4
RATE, RATE_NS = 12, 1_000_000_000
MAX_RUNNING = 3
QUEUES: dict[str, dict[str, Any]] = {
    "plain": {"concurrency": 8, "shards": 2},
    "ordered": {"concurrency": 8, "order": Order.KEY, "on_failure": "block"},
    "limited": {
        "concurrency": 4,
        "limits": [Limit(f"{RATE}/s")],
        "max_running": MAX_RUNNING,
    },
}


class Work(msgspec.Struct):
    """Take so many milliseconds, and fail the first attempts."""

    ms: int
    fails: int


def job_id(queue: str, key: str, number: int, fails: int) -> str:
    """Ids of one key sort in the order of their numbers."""
    return f"{queue}.{key}.{number:08d}-{fails}"


def planned(job: str) -> tuple[int, str]:
    """How many attempts a job takes, and how the last of them ends."""
    fails = int(job.rpartition("-")[2])
    return (fails + 1, "finish") if fails < ATTEMPTS else (ATTEMPTS, "fail")


def open_shop(url: str, ledger: Ledger) -> Faena:
    """The app; each queue has `work`, a coroutine, and `grind`, a thread."""
    app = Faena("chaos", url)
    for name, options in QUEUES.items():
        queue = app.queue(
            name,
            lease=f"{LEASE_S}s",
            max_deliveries=100,
            retain=Retain(completed_count=50_000),  # an id that is sent again must be known
            retry=Retry.fixed("50ms", attempts=ATTEMPTS, floor="0s", jitter=0),
            **options,
        )

        @queue.task(name="work")
        async def work(payload: Work, job: Job) -> None:
            with _written(ledger, job):
                await asyncio.sleep(payload.ms / 1000)
                _fail_as_planned(payload, job)

        @queue.task(name="grind")
        def grind(payload: Work, job: Job) -> None:
            with _written(ledger, job):
                time.sleep(payload.ms / 1000)
                _fail_as_planned(payload, job)

    return app


def _fail_as_planned(payload: Work, job: Job) -> None:
    if job.attempt <= payload.fails:
        raise RuntimeError("as planned")


@contextmanager
def _written(ledger: Ledger, job: Job) -> Generator[None]:
    """A line for the start, with the server's instant of the claim, and one for the end."""
    ledger.write("start", job.id, job.attempt, job.losses, round(job.started_at.timestamp() * 1e6))
    end = "stop"
    try:
        yield
        end = "finish"
    except Exception:
        end = "fail"
        raise
    finally:
        ledger.write(end, job.id, job.attempt, job.losses)
