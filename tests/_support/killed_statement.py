"""A process that ends itself with SIGKILL before its n-th statement to PostgreSQL."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime
from typing import Any

import psycopg

from faena import Faena
from faena.pg import Postgres

PLANS: dict[str, Callable[[Postgres], Awaitable[object]]] = {}


def run(url: str, plan: str, fatal: int) -> None:
    """Do what the plan says, up to a statement."""
    original, seen = psycopg.AsyncConnection.execute, 0

    async def execute(self: Any, *args: Any, **options: Any) -> Any:
        nonlocal seen
        seen += 1
        if seen == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return await original(self, *args, **options)

    psycopg.AsyncConnection.execute = execute  # type: ignore[method-assign]

    async def work() -> None:
        async with Postgres(Faena("killed"), url) as pg:
            await PLANS[plan](pg)

    asyncio.run(work())


async def _ensure(pg: Postgres) -> None:
    table = pg.partitioned("jobs", every="month", tenant="organization_id")
    await table.ensure(at=datetime(2025, 1, 15, tzinfo=UTC))


async def _convert(pg: Postgres) -> None:
    conversion = pg.convert("visits", by="at", every="day", ahead=3, tenant="organization_id")
    if await _step(pg) not in {"swapped", "finished"}:
        await conversion.run()
        await conversion.swap()


async def _step(pg: Postgres) -> str | None:
    async with pg.transaction() as connection:
        found = await connection.execute("SELECT step FROM faena.conversions")
        row = await found.fetchone()
    return None if row is None else row[0]


async def _convert_back(pg: Postgres) -> None:
    await _convert(pg)
    await pg.conversion("visits").revert()


async def _convert_all(pg: Postgres) -> None:
    """With all that a conversion may be: swapped, reverted, swapped again, and ended."""
    if await _step(pg) not in {"swapped", "finished"}:
        await _convert_back(pg)
        await _convert(pg)
    await pg.conversion("visits").finish(drop=True)


async def _cancel(pg: Postgres) -> None:
    conversion = pg.convert("visits", by="at", every="day", ahead=3, tenant="organization_id")
    if await _step(pg) != "cancelling":
        await conversion.run()
    await conversion.cancel()


async def _rollup(pg: Postgres) -> None:
    measures = {"jobs": "count(*)", "revenue": "sum(total)"}
    made = pg.rollup("jobs_per_day", of="jobs", every="day", group=["org"], measures=measures)
    await made.backfill(date(2025, 3, 1), date(2025, 3, 3))


PLANS.update(
    ensure=_ensure,
    convert=_convert,
    convert_back=_convert_back,
    convert_all=_convert_all,
    cancel=_cancel,
    rollup=_rollup,
)
