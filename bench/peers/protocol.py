"""What every Python adapter speaks: the job all systems run, and the shape of a producer.

An adapter module offers two names:

    connect(url)        an async context manager that yields a `Producer`
    work(url, slots)    run one worker process until it is killed; `slots` is the concurrency asked
                        for, or None for the setting at which the peer drains no-op jobs fastest

All systems run the same single task; its payload says what to do, so an adapter registers one
function only.
"""

from __future__ import annotations

import asyncio
import functools
import os
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

from bench.ledger import Ledger

QUEUE = "bench"
NAP_S = 0.05
_PAD = "x" * 132  # brings the JSON of a payload to about 200 bytes

Payload = dict[str, Any]


class Producer(NamedTuple):
    """How the driver puts jobs in: one awaited call each, or a list by the fastest public way."""

    enqueue: Callable[[Payload], Awaitable[object]]
    enqueue_many: Callable[[list[Payload]], Awaitable[object]]


def payload(kind: str, number: int) -> Payload:
    """Describe one job: `noop`, `nap` (50 ms of I/O) or `stamp` (a latency sample)."""
    return {"kind": kind, "number": number, "sent_ns": time.monotonic_ns(), "pad": _PAD}


@functools.cache
def ledger() -> Ledger:
    """Open the ledger that the harness named for this process."""
    return Ledger(Path(os.environ["BENCH_LEDGER"]))


async def perform(job: Payload) -> None:
    """The task, for peers that run coroutines."""
    book = ledger()
    _note_start(book, job)
    if job["kind"] == "nap":
        await asyncio.sleep(NAP_S)
    book.end()


def perform_blocking(job: Payload) -> None:
    """The task, for peers that run plain functions."""
    book = ledger()
    _note_start(book, job)
    if job["kind"] == "nap":
        time.sleep(NAP_S)
    book.end()


def _note_start(book: Ledger, job: Payload) -> None:
    started = book.begin()
    if job["kind"] == "stamp":
        book.sample(started - job["sent_ns"])


async def fan_out(
    enqueue: Callable[[Payload], Awaitable[object]], payloads: list[Payload], width: int = 32
) -> None:
    """Stand in for a bulk call where a peer has none: `width` single calls at a time."""
    rest = iter(payloads)

    async def lane() -> None:
        for item in rest:
            await enqueue(item)

    await asyncio.gather(*(lane() for _ in range(width)))


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run an adapter's coroutine on uvloop where its environment has it."""
    try:
        import uvloop  # pyright: ignore[reportMissingImports]
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)
