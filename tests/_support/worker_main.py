"""A worker process of a `Crew`: builds the plan's app and serves its queues until SIGTERM.

Claims are written to the ledger with the server's own instant of each, which is what limits bind.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import uvloop

from faena.engine import Engine
from faena.engine.scripts import Exchanged
from faena.worker.options import WorkerOptions
from faena.worker.supervise.signals import handling, stopping
from tests._support.fault_app import Plan, open_app
from tests._support.ledger import Ledger


async def serve(plan: Plan) -> None:
    ledger = Ledger(plan.ledger)
    async with open_app(plan, ledger) as app:
        worker = await app.worker(
            options=WorkerOptions(
                concurrency=plan.concurrency, grace=timedelta(seconds=plan.grace_s)
            )
        )
        record_claims((await app.runtime()).patient_engine, ledger)
        with handling(stopping(worker.stop, is_supervised=False)):
            ledger.write("up")
            await worker.run()
    ledger.write("down")


def record_claims(engine: Engine, ledger: Ledger) -> None:
    exchange, when_woken = engine.exchange, engine.exchange_when_woken

    def record(exchanged: Exchanged) -> None:
        for claim in exchanged.claimed:
            ledger.write("claim", claim.id, claim.attempts + 1, claim.losses, exchanged.claimed_at)

    async def recorded(*args: Any) -> Exchanged:
        exchanged = await exchange(*args)
        record(exchanged)
        return exchanged

    async def recorded_when_woken(*args: Any) -> None:
        def told(exchanged: Exchanged) -> None:
            record(exchanged)
            on_answer(exchanged)

        *asked, on_answer = args
        await when_woken(*asked, told)

    engine.exchange = recorded
    engine.exchange_when_woken = recorded_when_woken


def main(plan: Plan) -> None:
    logging.basicConfig(level=logging.INFO, format="%(process)d %(asctime)s %(message)s")
    uvloop.run(serve(plan))
