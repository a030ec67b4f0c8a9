"""An app for workers that are started by the command line: what its jobs do, the payload says.

The broker is in FAENA_URL, the ledger of what really ran in LEDGER.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

from faena import Faena, Job, Retain, Retry
from tests._support.ledger import Ledger

app = Faena("program")
ledger = Ledger(os.environ["LEDGER"])

work = app.queue(
    "work",
    lease="2s",
    concurrency=4,
    retry=Retry.fixed("50ms", attempts=3, floor="0s", jitter=0),
    retain=Retain(completed_count=None),
)
app.pool("pair", [work], instances=2, concurrency=3, memory="1Gi")

hoard: list[bytearray] = []


@work.task
async def take(seconds: float, job: Job) -> int:
    """A job that takes its time; returns the process that ran it."""
    with ledger.attempt(job):
        await asyncio.sleep(seconds)
    return os.getpid()


@work.task
async def keep(megabytes: int, job: Job) -> int:
    """A leak, in pieces that do not keep the interpreter for long."""
    with ledger.attempt(job):
        for _ in range(megabytes):
            hoard.append(bytearray(b"x") * (1 << 20))
            await asyncio.sleep(0)
    return os.getpid()


@work.task
async def freeze(_seconds: float, job: Job) -> None:
    """Stops the whole process, as a debugger or a lost GIL does; only another one can end it."""
    with ledger.attempt(job):
        if not job.losses:
            os.kill(os.getpid(), signal.SIGSTOP)


@work.task
async def block(seconds: float, job: Job) -> None:
    """Keeps the event loop, as code that should be in a thread does, unless a file appears."""
    until, freed = time.monotonic() + seconds, Path(f"{os.environ['LEDGER']}.free")
    with ledger.attempt(job):
        while time.monotonic() < until and not freed.exists():  # noqa: ASYNC240 - as below
            time.sleep(0.05)  # noqa: ASYNC251 - that is the point
