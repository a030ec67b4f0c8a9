"""Worker processes to be killed, frozen and replaced at will, and the app they share with a test.

    plan = Plan(url=server.url, ledger=str(tmp_path / "ledger"), queues={"q": QueuePlan()})
    with Crew(plan) as crew:
        worker, other = crew.hire(2)
        worker.kill()

Every worker runs `tests._support.hand`, which builds the same app from the same plan. None outlives
the test process: a shell that blocks on a pipe held only by that process kills it, even frozen.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from faena import Faena, Limit, Retain, Retry
from faena.job import Job
from tests._support.ledger import Ledger

_ROOT = Path(__file__).parents[2]
_STEP_S = 0.005


class QueuePlan(msgspec.Struct, omit_defaults=True):
    """The options of a queue, short enough for quick faults."""

    lease: str = "500ms"
    concurrency: int = 10
    limits: list[str] = []
    max_running: int | None = None
    max_deliveries: int = 100
    attempts: int = 3
    retry_wait: str = "50ms"


class Plan(msgspec.Struct, omit_defaults=True):
    """What a test and its workers agree on."""

    url: str
    ledger: str
    queues: dict[str, QueuePlan]
    concurrency: int | None = None
    grace_s: float = 10.0


class Work(msgspec.Struct, omit_defaults=True):
    """What a job is to do: take `ms` milliseconds, and fail its first `fails` attempts."""

    ms: int = 0
    fails: int = 0
    note: str = ""


def open_shop(plan: Plan, ledger: Ledger, *, name: str = "shop") -> Faena:
    """The app of a plan: `work` is a coroutine, `grind` a thread, on every queue."""
    app = Faena(name, plan.url)
    for queue, options in plan.queues.items():
        made = app.queue(
            queue,
            lease=options.lease,
            concurrency=options.concurrency,
            limits=[Limit(text) for text in options.limits],
            max_running=options.max_running,
            max_deliveries=options.max_deliveries,
            retry=Retry.fixed(options.retry_wait, attempts=options.attempts, floor="0s", jitter=0),
            retain=Retain(completed_count=None, dead_count=None, cancelled_count=None),
        )

        @made.task(name="work")
        async def work(payload: Work, job: Job) -> str:
            with ledger.attempt(job):
                if payload.note:
                    job.progress(payload.note)
                await asyncio.sleep(payload.ms / 1000)
                _fail_if_planned(payload, job)
            return f"{job.attempt}/{job.losses}"

        @made.task(name="grind")
        def grind(payload: Work, job: Job) -> str:
            never = threading.Event()
            with ledger.attempt(job):
                for _ in range(int(payload.ms / 1000 / _STEP_S)):
                    never.wait(_STEP_S)
                _fail_if_planned(payload, job)
            return f"{job.attempt}/{job.losses}"

    return app


def _fail_if_planned(payload: Work, job: Job) -> None:
    if job.attempt <= payload.fails:
        raise RuntimeError("as planned")


def task_of(app: Faena, queue: str = "q", name: str = "work") -> Any:
    """A task of the shop, to be enqueued."""
    return app.queues[queue].tasks[name]


class Hand:
    """One worker process."""

    def __init__(self, plan: Plan, log: Path) -> None:
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests._support.hand", msgspec.json.encode(plan).decode()],
                cwd=_ROOT,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", 'read -r _; kill -9 "$0"', str(self._process.pid)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """kill -9; returns when it is gone."""
        self._dismiss_guard()
        self._process.kill()
        self._process.wait()

    def freeze(self) -> None:
        """SIGSTOP: it holds its leases and sockets, and does nothing."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def terminate(self) -> None:
        """SIGTERM: it is to finish and leave."""
        self._process.terminate()

    async def ended(self, *, within: float = 15.0) -> int:
        """Its exit code, once it has left."""
        return await asyncio.to_thread(self._process.wait, within)

    def _dismiss_guard(self) -> None:
        # Before the process is reaped: until then its pid cannot be another's.
        if self._guard.poll() is None:
            self._guard.kill()
            self._guard.communicate()


class Crew:
    """The workers of one test."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.ledger = Ledger(plan.ledger)
        self.hands: list[Hand] = []
        self._log = Path(plan.ledger).with_suffix(".log")

    def hire(self, number: int = 1, plan: Plan | None = None) -> list[Hand]:
        """Start more workers; they are up a moment later."""
        hired = [Hand(plan or self.plan, self._log) for _ in range(number)]
        self.hands += hired
        return hired

    def are_up(self) -> bool:
        """Whether every worker that lives has begun to serve."""
        up = {entry.pid for entry in self.ledger.entries("up")}
        return all(hand.pid in up for hand in self.hands if hand.is_alive)

    def log(self) -> str:
        """What the workers wrote to standard error."""
        return self._log.read_text(errors="replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for hand in self.hands:
            with suppress(ProcessLookupError):
                hand.kill()
        self.ledger.close()
