"""The app whose jobs call a stand-in, which tests of upstreams and their workers share."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx
import msgspec
import uvloop

from faena import Breaker, Faena, Queue, Retain, Retry
from faena.engine.calls.resilience import SHARD
from faena.engine.scripts import texts
from faena.job import Job
from faena.worker.supervise.signals import handling, stopping
from tests._support.eventually import PATIENCE_S, eventually
from tests._support.fault_app import Plan
from tests._support.ledger import Ledger
from tests._support.stand_in import StandIn, call_stand_in, now_us
from tests._support.worker_processes import WorkerProcesses

UPSTREAM = "service"


class UpstreamPlan(Plan, omit_defaults=True, kw_only=True):
    """A plan of one queue `q`, each of whose jobs makes one call."""

    service: str
    """The address of the stand-in."""
    breaker: dict[str, Any] = msgspec.field(default_factory=dict)
    limits: tuple[str, ...] = ()
    tenant_limits: tuple[str, ...] = ()
    timeout: str = "30s"
    fair: bool | None = None


class Happened(NamedTuple):
    """What the broker told of a breaker, and when, in microseconds."""

    at: int
    event: str
    scope: str


class UpstreamProcesses(WorkerProcesses):
    """The workers of one test of upstreams."""

    @staticmethod
    def serve(plan: UpstreamPlan) -> None:
        main(plan)


def open_upstreams(plan: UpstreamPlan, ledger: Ledger) -> Faena:
    """The app of a plan; its task is `call`."""
    app = Faena("upstreams", plan.url, patience="60s")
    service = app.upstream(
        UPSTREAM,
        breaker=Breaker(**plan.breaker),
        limits=plan.limits,
        tenant_limits=plan.tenant_limits,
        timeout=plan.timeout,
    )
    options = plan.queues["q"]
    queue = app.queue(
        "q",
        fair=plan.fair,
        lease=options.lease,
        concurrency=options.concurrency,
        retry=Retry.fixed(options.retry_wait, attempts=options.attempts, floor="0s", jitter=0),
        retain=Retain(completed_count=None, dead_count=None),
    )
    client = httpx.AsyncClient(timeout=None)

    @queue.task(name="call", upstreams=[service])
    async def call(_number: int, job: Job) -> None:
        whose = {"job": job.id, "tenant": job.tenant or ""}
        try:
            await call_stand_in(client, plan.service, pid=os.getpid(), **whose)
        except httpx.HTTPStatusError:  # from here on, this process knows
            ledger.write("refused", job.id, detail=now_us())
            raise

    return app


@asynccontextmanager
async def upstreams_at_work(
    plan: UpstreamPlan, started: int
) -> AsyncGenerator[tuple[UpstreamProcesses, Faena]]:
    """So many worker processes, and the app to look with."""
    with UpstreamProcesses(plan) as processes:
        async with open_upstreams(plan, processes.ledger) as app:
            processes.start(started)
            await eventually(processes.are_up)
            yield processes, app


async def enqueue_calls(app: Faena, number: int, *, tenant: str | None = None) -> set[str]:
    """Jobs that make one call each; their ids."""
    task: Any = app.queues["q"].tasks["call"]
    named = {} if tenant is None else {"tenant": tenant}
    receipts = await task.enqueue_many(list(range(number)), **named)
    return {receipt.id for receipt in receipts}


async def all_called(app: Faena, number: int, *, within: float = PATIENCE_S) -> None:
    """So many jobs are completed, and no other is there."""

    async def is_done() -> bool:
        return await counted(app.queues["q"]) == {"completed": number}

    await eventually(is_done, within=within)


async def counted(queue: Queue) -> dict[str, int]:
    """The numbers of jobs by state, of states that have some."""
    return {state: number for state, number in (await queue.counts()).items() if number}


async def attempts_made(app: Faena, ids: set[str]) -> int:
    """The attempts that all of these jobs have used together."""
    looks = await (await app.runtime()).engine.look("q", sorted(ids))
    assert all(look is not None for look in looks), "no job is lost"
    marks = [msgspec.msgpack.decode(look.mark) if look.mark else {} for look in looks if look]
    failed = sum(mark.get("a", 0) for mark in marks)
    return failed + sum(look.state == "completed" for look in looks if look)


async def history(app: Faena) -> list[Happened]:
    """How breakers have turned, in order."""
    rows = await (await app.runtime()).engine.command("XRANGE", SHARD, "events", "-", "+")
    told: list[Happened] = []
    for _, fields in rows:
        words = texts(fields)
        told += [  # behind a line end it says why
            Happened(int(words[1]), event.removeprefix("upstream_"), about.partition("\n")[0])
            for event, about in zip(words[4::2], words[5::2], strict=True)
        ]
    return told


async def turned(app: Faena, event: str, times: int = 1) -> int:
    """When a breaker has come to a state for the so-manieth time."""
    found: list[int] = []

    async def has_turned() -> bool:
        found[:] = [one.at for one in await history(app) if one.event == event]
        return len(found) >= times

    await eventually(has_turned)
    return found[times - 1]


async def serve(plan: UpstreamPlan) -> None:
    ledger = Ledger(plan.ledger)
    async with open_upstreams(plan, ledger) as app:
        worker = await app.worker()
        with handling(stopping(worker.stop, is_supervised=False)):
            ledger.write("up")
            await worker.run()
    ledger.write("down")


def main(plan: UpstreamPlan) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(process)d %(asctime)s %(message)s")
    uvloop.run(serve(plan))


def plan_for(
    server_url: str, ledger: str, service: StandIn, queue: Any, **more: Any
) -> UpstreamPlan:
    """A plan for a stand-in."""
    made = UpstreamPlan(url=server_url, ledger=ledger, queues={"q": queue}, service=service.url)
    return msgspec.structs.replace(made, **more)
