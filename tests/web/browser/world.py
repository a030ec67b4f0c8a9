"""An app in trouble, for pages to show: jobs of every state, tenants, schedules, flows, a panic.

What people typed into it is hostile: every text that comes from outside has a script in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from faena import (
    Alerts,
    Breaker,
    Budget,
    Discard,
    Faena,
    Job,
    Limit,
    Order,
    Price,
    Retry,
    Thresholds,
)
from tests._support.eventually import eventually
from tests._support.working import serving

SCRIPT: Final = "<script>alert(1)</script><img src=x onerror=alert(2)>"
TENANTS: Final = ("acme", "bolt", "crux")


class World:
    """The app, and what is in it."""

    def __init__(self, url: str, namespace: str) -> None:
        self.app = app = Faena(
            "shop", url, namespace=namespace, alerts=Alerts(interval="1s", rules={"wait": None})
        )
        self.letting_go = asyncio.Event()
        self.openai = app.upstream(
            "openai",
            prices=[Price("tokens", "0.01 USD", per=1000)],
            estimate={"tokens": 1000},
            budgets=[Budget("5 USD", per="day")],
        )
        self.afip = app.upstream("afip", limits=["60/min"], breaker=Breaker(open="10m"))
        self.voice = app.feature("voice", upstreams=[self.openai], fallback="queue")
        self.invoicing = app.feature("invoicing", critical=True, upstreams=[self.afip])
        self.mail = app.queue(
            "mail",
            tenant_limits=[Limit("100/min")],
            retry=Retry.fixed("1h", attempts=2),
            alerts=Thresholds(depth=(2, 5)),
        )
        self.invoices = app.queue("invoices", order=Order.TENANT, concurrency=2)
        self.reports = app.queue("reports", limits=[Limit("2/h")])
        self._declare()

    def _declare(self) -> None:
        app = self.app

        @self.mail.task
        async def send(payload: dict[str, str], job: Job) -> str:
            match payload["do"]:
                case "fail":
                    raise ConnectionError(SCRIPT)
                case "die":
                    raise Discard(f"refused: {SCRIPT}", code=f"code {SCRIPT}"[:60])
                case "wait":
                    job.progress(40)
                    job.log(f"waiting for {SCRIPT}")
                    await self.letting_go.wait()
                case _:
                    return SCRIPT
            return "done"

        @self.invoices.task(upstreams=[self.afip])
        async def bill(payload: dict[str, str]) -> None:
            raise ConnectionError(SCRIPT)

        @self.reports.task
        async def report(payload: dict[str, str]) -> str:
            return "a report"

        @app.cron("0 2 * * *", tz="America/Argentina/Buenos_Aires")
        async def nightly() -> None: ...

        app.schedule("hourly-report", report, {"do": SCRIPT}, every="1h")
        self.send, self.bill, self.report = send, bill, report

    async def fill(self) -> None:
        """Jobs of every state; needs a worker."""
        for tenant in TENANTS:
            await self.send.enqueue_many(
                [
                    {"do": "work", "to": SCRIPT},
                    {"do": "fail"},
                    {"do": "die", "password": "hunter2"},
                ],
                tenant=tenant,
            )
        await self.send.enqueue({"do": "wait"}, tenant="acme", id="running-1")
        await self.send.enqueue({"do": "work"}, tenant="acme", delay="1h", id="later-1")
        for tenant in TENANTS[:2]:
            await self.bill.enqueue_many([{"do": "bill"}] * 3, tenant=tenant)
        await self.report.enqueue_many([{"do": "report"}] * 4)
        flow = self.app.flow("billing", id="first")
        first = flow.add(self.report.draft({"do": "one"}))
        second = flow.add(self.send.draft({"do": "work"}), after=[first])
        flow.add(self.send.draft({"do": SCRIPT}), after=[first, second])
        await flow.start()
        await eventually(self._is_settled)
        await self.afip.panic(reason=f"the tax office is down {SCRIPT}", lasting="1h")
        await self.invoices.pause(reason=SCRIPT, lasting="1h")

    async def _is_settled(self) -> bool:
        counts = await self.mail.counts()
        return counts["dead"] >= 3 and counts["running"] >= 1 and counts["delayed"] >= 4


@asynccontextmanager
async def world_at(url: str, namespace: str) -> AsyncGenerator[World]:
    """A world that is alive: a worker serves its queues."""
    world = World(url, namespace)
    try:
        async with serving(world.app):
            await world.fill()
            yield world
            world.letting_go.set()
    finally:
        for queue in world.app.queues.values():
            await queue.obliterate(force=True)
        await world.app.close()
