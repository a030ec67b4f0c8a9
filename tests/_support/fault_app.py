"""The app that a test of faults and its workers share, and what such tests ask of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

import msgspec

from faena import Death, Faena, Limit, Queue, Retain, Retry, Task
from faena.job import Job
from tests._support.eventually import PATIENCE_S, eventually
from tests._support.ledger import Ledger

_STEP_S = 0.005


class QueuePlan(msgspec.Struct, omit_defaults=True):
    """The options of a queue, short enough for quick faults."""

    lease: str = "2s"
    concurrency: int = 10
    limits: list[str] = []
    costs: list[str] = []
    """Limits of tokens."""
    max_running: int | None = None
    max_deliveries: int = 100
    attempts: int = 3
    retry_wait: str = "50ms"
    is_hooked: bool = False
    """Whether deaths of `work` are told in the ledger, by a hook."""
    kept: int | None = None
    """Completed jobs that are kept; all of them by default."""

    def all_limits(self) -> list[Limit]:
        by_cost = [Limit(text, cost="tokens") for text in self.costs]
        return [*(Limit(text) for text in self.limits), *by_cost]


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
    once: bool = False
    """Whether it takes no time any more when a worker has lost it."""
    fails: int = 0
    note: str = ""
    tokens: int | None = None
    """What it says it used, if it says so."""


def open_app(plan: Plan, ledger: Ledger, *, name: str = "shop") -> Faena:
    """The app of a plan: `work` is a coroutine, `grind` a thread, `pack` for batches of five."""
    app = Faena(name, plan.url, namespace="shop", patience="60s")
    for queue, options in plan.queues.items():
        made = app.queue(
            queue,
            lease=options.lease,
            concurrency=options.concurrency,
            limits=options.all_limits(),
            max_running=options.max_running,
            max_deliveries=options.max_deliveries,
            retry=Retry.fixed(options.retry_wait, attempts=options.attempts, floor="0s", jitter=0),
            retain=Retain(completed_count=options.kept, dead_count=None, cancelled_count=None),
        )

        @made.task(name="work")
        async def work(payload: Work, job: Job) -> str:
            with ledger.attempt(job):
                if payload.note:
                    job.progress(payload.note)
                await asyncio.sleep(_seconds(payload, job))
                if payload.tokens is not None:
                    job.spend(tokens=payload.tokens)
                _fail_if_planned(payload, job)
            return f"{job.attempt}/{job.losses}"

        if options.is_hooked:
            _add_bell(work, ledger)

        @made.task(name="grind")
        def grind(payload: Work, job: Job) -> str:
            never = threading.Event()
            with ledger.attempt(job):
                for _ in range(int(_seconds(payload, job) / _STEP_S)):
                    never.wait(_STEP_S)
                _fail_if_planned(payload, job)
            return f"{job.attempt}/{job.losses}"

        _add_pack(made, min(5, options.concurrency), ledger)
    return app


def _add_bell(task: Task[Work, str], ledger: Ledger) -> None:
    @task.on_dead
    async def bell(death: Death) -> None:
        ledger.write("bell", death.job_id, death.attempts_made, death.losses)


def _add_pack(queue: Queue, size: int, ledger: Ledger) -> None:
    @queue.batch(size, "100ms", name="pack")
    async def pack(works: list[Work], jobs: list[Job]) -> list[str]:
        with ExitStack() as attempts:
            for job in jobs:
                attempts.enter_context(ledger.attempt(job))
            await asyncio.sleep(max(map(_seconds, works, jobs)))
        return [f"{job.attempt}/{job.losses}" for job in jobs]


def _seconds(payload: Work, job: Job) -> float:
    return 0.0 if payload.once and job.losses else payload.ms / 1000


def _fail_if_planned(payload: Work, job: Job) -> None:
    if job.attempt <= payload.fails:
        raise RuntimeError("as planned")


def task_of(app: Faena, queue: str = "q", name: str = "work") -> Any:
    """A task of the shop, to be enqueued."""
    return app.queues[queue].tasks[name]


async def enqueue(
    app: Faena, works: Iterable[Work], *, queue: str = "q", name: str = "work", **options: Any
) -> set[str]:
    """The ids of the jobs, all of which must be accepted."""
    receipts = await task_of(app, queue, name).enqueue_many(works, **options)
    assert all(receipt.is_accepted for receipt in receipts)
    return {receipt.id for receipt in receipts}


async def all_completed(
    app: Faena, accepted: set[str], *, queue: str = "q", within: float = PATIENCE_S
) -> None:
    """Every accepted job is completed, no other job is there, and no lease is left."""

    async def is_done() -> bool:
        return (await app.queues[queue].counts())["completed"] >= len(accepted)

    await eventually(is_done, within=within)
    counts = await app.queues[queue].counts()
    assert {state: number for state, number in counts.items() if number} == {
        "completed": len(accepted)
    }
    engine = (await app.runtime()).engine
    found = await engine.look(queue, sorted(accepted))
    assert {look and look.state for look in found} == {"completed"}
