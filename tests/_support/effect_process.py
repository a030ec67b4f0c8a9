"""A worker whose handlers write to a database, to be killed at will."""

from __future__ import annotations

import asyncio
import random

import msgspec

from faena import Faena, Task
from faena.pg import Connection, Postgres


class EffectPlan(msgspec.Struct):
    """What a test and its workers agree on."""

    url: str
    namespace: str
    database: str


def effect_app(plan: EffectPlan) -> tuple[Faena, Postgres, Task[int, int]]:
    """Handlers write, and take some time before and after."""
    app = Faena("shop", plan.url, namespace=plan.namespace)
    pg = Postgres(app, plan.database, relay=False)

    @app.queue("sales", lease="2s", concurrency=10, max_deliveries=100).task
    @pg.effect
    async def sell(transaction: Connection, number: int) -> int:
        await asyncio.sleep(random.random() / 20)
        await transaction.execute("INSERT INTO sold VALUES (%s)", [number])
        await asyncio.sleep(random.random() / 20)
        return number

    return app, pg, sell


def work(plan: EffectPlan) -> None:
    """Serve until killed."""

    async def serve() -> None:
        app, _, _ = effect_app(plan)
        await app.run_worker()

    asyncio.run(serve())
