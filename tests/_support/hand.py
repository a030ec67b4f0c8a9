"""A worker process of a `Crew`: builds the plan's app and serves its queues until SIGTERM.

Claims are written to the ledger with the server's own instant of each, which is what limits bind.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import uvloop

from faena.engine import Engine
from faena.engine.scripts import Exchanged
from faena.worker.supervise.signals import handling, stopping
from faena.worker.worker import WorkerOptions
from tests._support.ledger import Ledger
from tests._support.shop import Plan, open_shop

Exchange = Callable[..., Awaitable[Any]]


async def serve(plan: Plan) -> None:
    ledger = Ledger(plan.ledger)
    async with open_shop(plan, ledger) as app:
        worker = await app.worker(
            options=WorkerOptions(concurrency=plan.concurrency, grace_s=plan.grace_s)
        )
        record_claims((await app.runtime()).patient_engine, ledger)
        with handling(stopping(worker.stop, is_supervised=False)):
            ledger.write("up")
            await worker.run()
    ledger.write("down")


def record_claims(engine: Engine, ledger: Ledger) -> None:
    engine.exchange = _recorded(engine.exchange, ledger)
    engine.exchange_when_woken = _recorded(engine.exchange_when_woken, ledger)


def _recorded(exchange: Exchange, ledger: Ledger) -> Exchange:
    async def recorded(*args: Any) -> Exchanged | None:
        exchanged = await exchange(*args)
        for claim in exchanged.claimed if exchanged else ():
            ledger.write("claim", claim.id, claim.attempts + 1, claim.losses, exchanged.now)
        return exchanged

    return recorded


def main(plan: Plan) -> None:
    logging.basicConfig(level=logging.INFO, format="%(process)d %(asctime)s %(message)s")
    uvloop.run(serve(plan))
