"""An app whose jobs do the worst a handler can, beside one that minds its own business.

Every kind of poison is a task; those that only end their own attempt exist as a coroutine and as a
plain function, which runs in a thread. Every start is written down outside the broker.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from faena import Faena, Job, Queue, Retry
from tests._support.ledger import Ledger

app = Faena("program")
ledger = Ledger(os.environ["LEDGER"])
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

THRICE = Retry.fixed("20ms", attempts=3, floor="0s", jitter=0)
poison = app.queue("poison", concurrency=30, payload_limit=10_000, retry=THRICE)
deadly = app.queue("deadly", lease="2s", retry=THRICE)
stubborn = app.queue("stubborn", lease="2s", timeout="300ms", retry=Retry.never())
calm = app.queue("calm", lease="2s", concurrency=5, max_deliveries=100)


@calm.task
async def breathe(number: int, job: Job) -> int:
    ledger.write("start", job.id, job.attempt, job.losses)
    await asyncio.sleep(0.01)
    return number


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("there are no words")

    __repr__ = __str__


# -- what ends the attempt ------------------------------------------------------------------------


def _raise(error: BaseException) -> Callable[[], Any]:
    def act() -> Any:
        raise error

    return act


def _recurse() -> Any:
    return _recurse()


def _exhaust() -> Any:
    return bytearray(1 << 60)


RAISING: dict[str, Callable[[], Any]] = {
    "sys_exit": lambda: sys.exit(3),
    "recursion": _recurse,
    "memory_error": _exhaust,
    "keyboard_interrupt": _raise(KeyboardInterrupt()),
    "cancelled_error": _raise(asyncio.CancelledError()),
    "generator_exit": _raise(GeneratorExit()),
    "stop_iteration": _raise(StopIteration()),
    "unspeakable": _raise(Unspeakable()),
    "unencodable": object,
    "too_large": lambda: "x" * 20_000,
}

# -- what ends the process ------------------------------------------------------------------------


def _segfault() -> None:
    ctypes.string_at(0)


FATAL: dict[str, Callable[[], Any]] = {
    "os_exit": lambda: os._exit(0),
    "kill_self": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "segfault": _segfault,
}


def _register(queue: Queue, name: str, act: Callable[[], Any]) -> None:
    @queue.task(name=f"{name}.async")
    async def coroutine(job: Job) -> Any:
        ledger.write("start", job.id, job.attempt, job.losses)
        await asyncio.sleep(0)
        return act()

    @queue.task(name=f"{name}.thread")
    def function(job: Job) -> Any:
        ledger.write("start", job.id, job.attempt, job.losses)
        return act()


for _name, _act in RAISING.items():
    _register(poison, _name, _act)
for _name, _act in FATAL.items():
    _register(deadly, _name, _act)


@poison.task(run="process")
def die_apart(job: Job) -> None:
    """The same in a process of its own."""
    ledger.write("start", job.id, job.attempt, job.losses)
    os.kill(os.getpid(), signal.SIGKILL)


# -- what does not end ----------------------------------------------------------------------------


@stubborn.task
async def swallow(job: Job) -> None:
    """Will not be cancelled."""
    ledger.write("start", job.id, job.attempt, job.losses)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue


@stubborn.task
async def block(job: Job) -> None:
    """Keeps the event loop for itself."""
    ledger.write("start", job.id, job.attempt, job.losses)
    time.sleep(3600)  # noqa: ASYNC251 - which is the point


@stubborn.task
def hang(job: Job) -> None:
    """Keeps a thread, in C, where no exception reaches it."""
    ledger.write("start", job.id, job.attempt, job.losses)
    time.sleep(3600)
