"""A process that relays an outbox, or writes into it, to be killed at will."""

from __future__ import annotations

import asyncio
import random

import msgspec
import psycopg

from faena import Faena, Job, Retain, Task
from faena.pg import Postgres
from faena.pg.service import serve


class OutboxPlan(msgspec.Struct):
    """What a test and its processes agree on."""

    url: str
    namespace: str
    database: str
    order: str = "none"


def outbox_app(plan: OutboxPlan, *, relay: bool) -> tuple[Faena, Postgres, Task[int, None]]:
    """Each job notes in the database that it ran; none is kept once it has completed, so only the
    outbox's own means can tell that one has come and gone."""
    app = Faena("shop", plan.url, namespace=plan.namespace)
    pg = Postgres(app, plan.database, relay=relay)
    retain = Retain(completed_count=0)

    @app.queue("work", order=plan.order, retain=retain, concurrency=20).task
    async def note(number: int, job: Job) -> None:
        async with pg.transaction() as connection:
            await connection.execute(
                "INSERT INTO ran (number, job) VALUES (%s, %s)", [number, job.id]
            )

    return app, pg, note


def relay(plan: OutboxPlan) -> None:
    """Relays and runs nothing."""

    async def work() -> None:
        _, pg, _ = outbox_app(plan, relay=False)
        await serve(pg)

    asyncio.run(work())


def produce(plan: OutboxPlan, first: int, number: int) -> None:
    """Commits one job after another; some transactions last, and some are rolled back."""
    dice = random.Random(first)
    _, pg, note = outbox_app(plan, relay=False)
    with psycopg.connect(plan.database) as connection:
        for one in range(first, first + number):
            with connection.cursor() as cursor:
                tenant = f"t{one % 5}"
                pg.outbox.enqueue_sync(cursor, note, one, tenant=tenant, key="k")
            if dice.random() < 0.1:
                connection.rollback()
            else:
                connection.execute("INSERT INTO committed VALUES (%s)", [one])
                connection.commit()
