"""Administrators see what each kind of work waits, takes and needs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from math import ceil
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from apps.campotech.api.app import create
from apps.campotech.api.queues import JobTimes, status_of
from apps.campotech.settings import Settings
from apps.campotech.system import System
from apps.campotech.tiers import DISPATCH
from apps.sandbox.sandbox import Sandbox
from apps.sandbox.stand_in import serving

from apps.campotech.messages import Analytics
from faena import QueueAdvice
from tests._support.eventually import eventually
from tests._support.valkey import Server
from tests._support.working import running
from tests.apps.campotech.business import Business

NONE = {
    "count": 0,
    **{f"{of}{what}Time": 0 for of in ("avg", "p50", "p95", "p99") for what in ("Wait", "Process")},
}


@pytest.fixture
def admin(system: System) -> dict[str, str]:
    return admin_of(system)


def admin_of(system: System) -> dict[str, str]:
    return {"authorization": f"Bearer {system.settings.admin_token}"}


@asynccontextmanager
async def running_api(system: System) -> AsyncGenerator[httpx.AsyncClient]:
    await system.pg.outbox.publish()
    async with serving(create(system)) as url, httpx.AsyncClient(base_url=url) as client:
        yield client


async def metrics(api: httpx.AsyncClient, admin: dict[str, str]) -> dict[str, Any]:
    answer = await api.get("/api/admin/queue-metrics", headers=admin)
    assert answer.status_code == 200
    return answer.json()


async def count(system: System, business: Business, number: int) -> None:
    """Events that are counted, by a worker as it runs in production."""
    events = [
        Analytics(
            org_id=business.id,
            idempotency_key=f"event-number-{one:06}",
            created_at=datetime.now(UTC),
            event_type="opened",
            event_data={},
            timestamp=datetime.now(UTC),
        )
        for one in range(number)
    ]
    await system.statistics.record.enqueue_many(events, tenant=str(business.id))


async def test_every_kind_of_work_is_there_by_the_name_that_the_web_application_uses(
    api: httpx.AsyncClient, admin: dict[str, str], system: System
) -> None:
    found = await metrics(api, admin)
    assert datetime.fromisoformat(found["timestamp"]).tzinfo is not None
    assert set(DISPATCH) <= set(found["queues"])
    kinds = {(one["queue"], one["task"]) for one in found["queues"].values()}
    declared = {(name, task) for name, queue in system.queues.items() for task in queue.tasks}
    assert kinds == declared
    assert (await api.get("/api/admin/queue-metrics")).status_code == 401  # an organisation's token
    quiet = found["queues"]["invoice:afip-submit"]
    assert quiet["last24h"] == NONE
    assert quiet["optimization"] == {
        "currentConcurrency": 3,
        "recommendedConcurrency": 0,
        "arrivalRate": 0,
        "avgServiceTime": 0,
        "currentUtilization": 0,
    }
    assert quiet["status"] == "healthy"
    assert "no worker serves the queue now" in quiet["advice"][0]


async def test_statistics_and_littles_law_of_work_that_was_done(
    environ: dict[str, str], server: Server, sandbox: Sandbox
) -> None:
    fast = {"CAMPOTECH_BROKER_URL": server.url, "CAMPOTECH_SPEED": "1000"}
    async with System(Settings.from_env({**environ, **fast})) as system, running_api(system) as api:
        business = await Business.make(system, sandbox)
        async with running(system.app, queues=["analytics"]):
            await count(system, business, 120)
            await eventually(lambda: is_counted(system, 120))
            found = (await metrics(api, admin_of(system)))["queues"]["analytics/record"]
    seen, advised = found["last24h"], found["optimization"]
    assert seen["count"] == 120
    assert 0 < seen["p50ProcessTime"] <= seen["p95ProcessTime"] <= seen["p99ProcessTime"]
    assert seen["avgWaitTime"] > 0
    assert advised["currentConcurrency"] == 5
    assert advised["avgServiceTime"] == pytest.approx(seen["avgProcessTime"] / 1e3)
    used = advised["arrivalRate"] * advised["avgServiceTime"]
    assert advised["currentUtilization"] == pytest.approx(used / 5)
    assert advised["recommendedConcurrency"] == max(1, ceil(used / 0.7))
    assert "come and take" in found["advice"][0]


def test_the_status_is_that_of_the_specification() -> None:
    def status(used: float, *, waited_ms: float = 0, is_enough: bool = True) -> str:
        hour = SimpleNamespace(utilization=used, is_enough=is_enough)
        return status_of(cast("QueueAdvice", hour), JobTimes(p95_wait_time=waited_ms))

    assert [status(0.7), status(0.71), status(0.9), status(0.91)] == [
        *("healthy", "warning", "warning", "critical"),
    ]
    assert status(2.0, is_enough=False) == "healthy"
    assert [status(0.1, waited_ms=30_000), status(0.1, waited_ms=30_001)] == ["healthy", "warning"]


async def is_counted(system: System, number: int) -> bool:
    (found,) = await system.app.advice("analytics", window="24h")
    return sum(one.run.count for one in found.tasks) == number
