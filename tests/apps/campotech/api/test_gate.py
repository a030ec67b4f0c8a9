"""Requests beyond those that can be served are turned away at once, and come again."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import httpx
from apps.campotech.api.gate import Appointments
from apps.campotech.system import System

from faena.testing import Harness
from tests._support.eventually import PATIENCE_S, eventually


async def test_requests_that_would_only_wait_are_turned_away(
    system: System, harnessed: Harness, api: httpx.AsyncClient
) -> None:
    async with AsyncExitStack() as busy:
        for _ in range(system.pg.pool_size):
            await busy.enter_async_context(system.pg.transaction("busy"))
        asking = [
            asyncio.create_task(api.get("/api/v1/jobs", timeout=PATIENCE_S))
            for _ in range(5 * system.pg.pool_size)
        ]
        await eventually(lambda: sum(one.done() for one in asking) >= system.pg.pool_size)
        turned_away = [one.result() for one in asking if one.done()]

        async def is_healthy() -> bool:
            health = await api.get("/api/health")
            return health.json()["database"]["status"] == "healthy"

        await eventually(is_healthy)  # a look may take too long on a busy machine
    assert {one.status_code for one in turned_away} == {503}
    assert {one.headers["content-type"] for one in turned_away} == {"application/problem+json"}
    assert all(1 <= int(one.headers["retry-after"]) <= 30 for one in turned_away)
    await asyncio.gather(*asking)
    assert (await api.get("/api/v1/jobs")).status_code == 200


def test_each_is_told_another_time() -> None:
    appointments = Appointments()
    told = [appointments.next_s(100.0) for _ in range(200)]
    assert (told[0], told[-1]) == (1, 5)
    assert max(told.count(second) for second in set(told)) <= 51


def test_nobody_is_told_to_wait_for_longer_than_half_a_minute() -> None:
    appointments = Appointments()
    assert max(appointments.next_s(100.0) for _ in range(10_000)) == 30
    assert appointments.next_s(200.0) == 1
