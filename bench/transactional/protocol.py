"""What every adapter of this package speaks.

    prepare(url)     a coroutine that makes the system's tables in an empty database
    connect(url)     an async context manager that yields a `Transact`
    work(url)        run one worker process until it is killed

A job's payload is `order(number)`; its handler calls `perform(number)`.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from bench.starts import Starts

QUEUE = "bench"
TASK = "run"
ROW = "a business row, as long as such rows are"

Transact = Callable[[Sequence[int], Callable[[], None]], Awaitable[None]]
"""One transaction: insert a row into `orders`, enqueue a job for each number, call, commit."""


def order(number: int) -> dict[str, Any]:
    """About 200 bytes of JSON."""
    return {"number": number, "customer": f"customer-{number % 1000}", "note": "x" * 140}


@functools.cache
def starts() -> Starts:
    """The ledger that the harness named for this process."""
    return Starts(Path(os.environ["BENCH_LEDGER"]))


def perform(number: int) -> None:
    """What every handler does."""
    book = starts()
    book.start(number)
    book.end()
