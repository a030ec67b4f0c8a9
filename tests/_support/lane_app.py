"""The app of laned queues that tests of faults and their workers share, and its worker process.

A job's id says where it belongs: tenant, key and number in its chain, as in `acme.a.0007`. So the
ledger alone tells in which order the attempts of a chain began.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import uvloop

from faena import Faena, Limit, RateLimited, Retain, Retry
from faena.inspection.audit import audit
from faena.job import Job
from faena.worker.options import WorkerOptions
from faena.worker.supervise.signals import handling, stopping
from tests._support.eventually import PATIENCE_S, eventually
from tests._support.fault_app import Plan, Work, task_of
from tests._support.ledger import Ledger
from tests._support.worker_main import record_claims
from tests._support.worker_processes import WorkerProcess, WorkerProcesses

QUEUE = "q"


class LanePlan(Plan, omit_defaults=True, kw_only=True):
    """A plan whose one queue `q` keeps an order, or has bounds for each tenant."""

    order: str = "none"
    on_failure: str = "block"
    fair: bool | None = None
    tenant_limits: tuple[str, ...] = ()
    key_limits: tuple[str, ...] = ()
    tenant_max_running: int | None = None
    shards: int = 1


class LaneWork(Work, omit_defaults=True):
    """Work whose provider says "not before" the first `limited` times, for `limited_ms` each."""

    limited: int = 0
    limited_ms: int = 0


class LaneProcesses(WorkerProcesses):
    """The workers of one test of lanes."""

    @staticmethod
    def serve(plan: LanePlan) -> None:
        main(plan)

    def replace(self) -> None:
        """kill -9 of the busiest worker, and a new one."""
        self.kill(self.busiest())
        self.start()

    def busiest(self) -> WorkerProcess:
        """The worker with the most handlers under way."""
        open_by_pid = dict.fromkeys(
            (process.pid for process in self.started if process.is_alive), 0
        )
        for one in self.ledger.entries("start", "finish", "fail", "stop"):
            if one.pid in open_by_pid:
                open_by_pid[one.pid] += 1 if one.kind == "start" else -1
        busiest = max(open_by_pid, key=lambda pid: open_by_pid[pid])
        return next(process for process in self.started if process.pid == busiest)


def open_lanes(plan: LanePlan, ledger: Ledger) -> Faena:
    """The app of a plan; its queue has the one task `work`."""
    app = Faena("lanes", plan.url, patience="60s")
    options = plan.queues[QUEUE]
    queue = app.queue(
        QUEUE,
        order=plan.order,
        on_failure=plan.on_failure,
        fair=plan.fair,
        tenant_limits=[Limit(text) for text in plan.tenant_limits],
        key_limits=[Limit(text) for text in plan.key_limits],
        tenant_max_running=plan.tenant_max_running,
        shards=plan.shards,
        lease=options.lease,
        concurrency=options.concurrency,
        max_deliveries=options.max_deliveries,
        retry=Retry.fixed(options.retry_wait, attempts=options.attempts, floor="0s", jitter=0),
        retain=Retain(completed_count=None, dead_count=None, cancelled_count=None),
    )

    @queue.task(name="work")
    async def work(payload: LaneWork, job: Job) -> None:
        with ledger.attempt(job):
            if payload.limited and ledger.jobs("start")[job.id] <= payload.limited:
                raise RateLimited(payload.limited_ms / 1000, scope="tenant")
            await asyncio.sleep(payload.ms / 1000)
            if job.attempt <= payload.fails:
                raise RuntimeError("as planned")

    return app


@asynccontextmanager
async def at_work(plan: LanePlan, started: int) -> AsyncGenerator[tuple[LaneProcesses, Faena]]:
    with LaneProcesses(plan) as processes:
        async with open_lanes(plan, processes.ledger) as app:
            processes.start(started)
            await eventually(processes.are_up)
            yield processes, app


def job_id(tenant: str, key: str, number: int) -> str:
    return f"{tenant}.{key}.{number:04d}"


async def line_up(app: Faena, works: Iterable[tuple[str, LaneWork]]) -> set[str]:
    """Enqueue works in this order, each with an id that says its tenant and key."""
    task = task_of(app, QUEUE)
    drafts = [task.draft(work, **_place(one), id=one) for one, work in works]
    receipts = await task.enqueue_many(drafts)
    assert all(receipt.is_accepted for receipt in receipts)
    return {receipt.id for receipt in receipts}


def _place(one: str) -> dict[str, Any]:
    tenant, key, _ = one.split(".")
    return {"tenant": tenant, "key": key}


async def all_ended(app: Faena, *, within: float = PATIENCE_S, **expected: int) -> None:
    """The queue holds finished jobs only, so many in each state, and its keys add up."""

    async def is_done() -> bool:
        counts = await app.queues[QUEUE].counts()
        return {state: number for state, number in counts.items() if number} == expected

    await eventually(is_done, within=within)
    runtime = await app.runtime()
    for shard in await runtime.routers.of(QUEUE).names():
        assert await audit(runtime.engine, shard) == []


async def serve(plan: LanePlan) -> None:
    ledger = Ledger(plan.ledger)
    async with open_lanes(plan, ledger) as app:
        worker = await app.worker(options=WorkerOptions(grace=timedelta(seconds=plan.grace_s)))
        record_claims((await app.runtime()).engine, ledger)
        with handling(stopping(worker.stop, is_supervised=False)):
            ledger.write("up")
            await worker.run()
    ledger.write("down")


def main(plan: LanePlan) -> None:
    logging.basicConfig(level=logging.INFO, format="%(process)d %(asctime)s %(message)s")
    uvloop.run(serve(plan))
