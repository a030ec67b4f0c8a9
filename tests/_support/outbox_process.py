"""A process that relays an outbox, or writes into it, to be killed and frozen at will."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Callable
from typing import Any

import msgspec
import psycopg

from faena import Backpressure, Faena, Job, Retain, Task
from faena.engine import Wire
from faena.pg import Connection, Postgres, settlement
from faena.pg import relay as relaying
from faena.pg.dispatch import Dispatch
from faena.pg.service import serve
from tests._support.eventually import eventually

_SWEEP_S = 0.2
"""Workers of these tests do not relay, so nobody but the sweep learns what is settled."""


class OutboxPlan(msgspec.Struct):
    """What a test and its processes agree on."""

    url: str
    namespace: str
    database: str
    order: str = "none"
    hard: int = 0
    """From how many live jobs on the queue is full; 0: never."""


def outbox_app(plan: OutboxPlan, *, relay: bool) -> tuple[Faena, Postgres, Task[int, None]]:
    """Each job notes in the database that it ran; none is kept once it has completed, so only the
    outbox's own means can tell that one has come and gone."""
    app = Faena("shop", plan.url, namespace=plan.namespace)
    pg = Postgres(app, plan.database, relay=relay)
    retain = Retain(completed_count=0)
    more: dict[str, Any] = {}
    if plan.hard:
        more["backpressure"] = Backpressure(hard=plan.hard, max_delay="50ms")

    @app.queue("work", order=plan.order, retain=retain, concurrency=20, **more).task
    async def note(number: int, job: Job) -> None:
        async with pg.transaction() as connection:
            await connection.execute(
                "INSERT INTO ran (number, job) VALUES (%s, %s)", [number, job.id]
            )

    return app, pg, note


def relay(plan: OutboxPlan) -> None:
    """Relays and runs nothing."""

    async def work() -> None:
        settlement.SWEEP_S = _SWEEP_S
        _, pg, _ = outbox_app(plan, relay=False)
        await serve(pg)

    asyncio.run(work())


def relay_until(plan: OutboxPlan, fatal: int, how: int = signal.SIGKILL) -> None:
    """Relays until all is settled; killed, or frozen, before its n-th call of database or broker.

    One that is frozen is ended by the server after a second.
    """
    seen = 0

    def count() -> None:
        nonlocal seen
        seen += 1
        if seen == fatal:
            os.kill(os.getpid(), how)

    if how == signal.SIGSTOP:
        _end_frozen_after(1.0)

    for owner, name in ((psycopg.AsyncConnection, "execute"), (Wire, "call"), (Wire, "run")):
        setattr(owner, name, _counted(getattr(owner, name), count))

    async def work() -> None:
        settlement.SWEEP_S = _SWEEP_S
        _, pg, _ = outbox_app(plan, relay=False)
        serving = asyncio.create_task(serve(pg))
        with psycopg.connect(plan.database, autocommit=True) as connection:
            find = b"SELECT FROM faena.outbox LIMIT 1"
            await eventually(lambda: connection.execute(find).fetchone() is None)
        serving.cancel()

    asyncio.run(work())


def _counted(call: Callable[..., Any], count: Callable[[], None]) -> Callable[..., Any]:
    def counting(*args: Any, **options: Any) -> Any:
        count()
        return call(*args, **options)

    return counting


def relay_frozen(plan: OutboxPlan, when: str, frozen_s: float) -> None:
    """Relays, and freezes in its first transaction with rows: before it sends them, or after."""
    send = Dispatch.send

    async def freezing(self: Dispatch, rows: Any) -> Any:
        Dispatch.send = send
        if when == "before":
            os.kill(os.getpid(), signal.SIGSTOP)
        results = await send(self, rows)
        if when != "before":
            os.kill(os.getpid(), signal.SIGSTOP if when == "after" else signal.SIGKILL)
        return results

    Dispatch.send = freezing
    _end_frozen_after(frozen_s)
    relay(plan)


def _end_frozen_after(frozen_s: float) -> None:
    relaying.OutboxRelay.__init__.__defaults__ = (relaying.RelayTerms(frozen_s=frozen_s),)


def sell_until(plan: OutboxPlan, fatal: int) -> None:
    """Works until no job is left, or is killed before its n-th statement or commit, or after it."""
    seen = 0
    execute, commit = psycopg.AsyncConnection.execute, psycopg.AsyncConnection.commit

    def count() -> None:
        nonlocal seen
        seen += 1
        if seen == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    async def committing(self: Any) -> None:
        count()
        await commit(self)
        count()

    psycopg.AsyncConnection.execute = _counted(execute, count)
    psycopg.AsyncConnection.commit = committing
    app, _, _ = selling_app(plan)
    asyncio.run(app.run_worker(until_empty=True))


def selling_app(plan: OutboxPlan) -> tuple[Faena, Postgres, Task[int, int]]:
    """Each job has an effect on the database."""
    app = Faena("shop", plan.url, namespace=plan.namespace)
    pg = Postgres(app, plan.database, relay=False)

    @app.queue("sales", lease="2s", max_deliveries=100).task
    @pg.effect
    async def sell(transaction: Connection, number: int, job: Job) -> int:
        await transaction.execute("INSERT INTO ran (number, job) VALUES (%s, %s)", [number, job.id])
        return number

    return app, pg, sell


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
                connection.execute("INSERT INTO committed (number) VALUES (%s)", [one])
                connection.commit()
