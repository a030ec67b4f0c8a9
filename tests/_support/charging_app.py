"""An app that charges each order once, in a worker process that kills itself where it is told to.

What was really charged is written down outside the broker.
"""

from __future__ import annotations

import logging
import os
import signal

import msgspec
import uvloop

from faena import Faena, IdempotencyKey, Job, Retry
from faena.task import Task
from faena.worker.supervise.signals import handling, stopping
from tests._support.ledger import Ledger

POINTS = ("claimed", "begun", "charged", "set", "kept")
"""Where a worker can die: before the record, in it before and after the effect, and behind it."""


class ChargingPlan(msgspec.Struct, frozen=True):
    url: str
    ledger: str
    dies_at: str = ""
    """Once: whoever comes by later goes on."""
    fails: bool = False
    """Whether the first run fails behind the record."""
    deliveries: int = 3


def open_charging_app(plan: ChargingPlan, ledger: Ledger) -> tuple[Faena, Task[str, str]]:
    app = Faena("charging", plan.url, patience="60s")
    charging = app.queue(
        "charging", lease="2s", max_deliveries=plan.deliveries, retry=Retry.never(), concurrency=1
    )

    def passes(point: str, job: Job) -> None:
        is_first = not ledger.entries("dying")
        if point == plan.dies_at and is_first:
            ledger.write("dying", job.id)
            os.kill(os.getpid(), signal.SIGKILL)

    @charging.task
    async def charge(order: str, job: Job) -> str:
        ledger.write("start", job.id, job.attempt, job.losses)
        passes("claimed", job)
        key = IdempotencyKey("org-1", "order", order, "charge")
        async with charging.idempotency.once(key, job) as record:
            if record.is_done:
                return f"{record.result} before"
            passes("begun", job)
            ledger.write("charge", job.id)
            passes("charged", job)
            record.result = "paid"
            passes("set", job)
        passes("kept", job)
        if plan.fails and len(ledger.entries("start")) == 1:
            raise ConnectionRefusedError("nobody could be told")
        return "paid"

    return app, charge


async def serve(plan: ChargingPlan) -> None:
    ledger = Ledger(plan.ledger)
    app, _ = open_charging_app(plan, ledger)
    async with app:
        worker = await app.worker()
        with handling(stopping(worker.stop, is_supervised=False)):
            ledger.write("up")
            await worker.run()


def main(plan: ChargingPlan) -> None:
    logging.basicConfig(level=logging.INFO, format="%(process)d %(asctime)s %(message)s")
    uvloop.run(serve(plan))
