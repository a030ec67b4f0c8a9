"""Schedules: tasks that run at certain instants."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import pytest

from faena import Faena, Job
from faena.testing import Harness, harness
from tests._support.valkey import Server


@pytest.fixture
def midnight() -> datetime:
    return datetime(2026, 3, 28, tzinfo=UTC)


async def test_a_function_runs_by_a_cron_expression(
    app: Faena, valkey: Server, midnight: datetime
) -> None:
    nights: list[str] = []

    @app.cron("30 2 * * *", tz="Europe/Madrid")
    async def nightly(job: Job) -> None:
        nights.append(f"{job.schedule} {job.instant:%d %H:%M}")

    async with harness(app, url=valkey.url, start=midnight) as h:
        (await h.drain(through="3d")).check()
    # On the 29th the clock goes from 02:00 to 03:00.
    assert nights == ["nightly 28 01:30", "nightly 29 01:00", "nightly 30 00:30"]


async def test_a_function_runs_every_so_often(app: Faena, h: Harness) -> None:
    @app.every("6h")
    def refresh() -> None: ...

    assert len(await h.drain(through="1d")) == 4


async def test_a_task_has_any_number_of_schedules(app: Faena, h: Harness) -> None:
    reports: list[str] = []

    @app.queue("reports").task
    async def report(kind: str) -> None:
        reports.append(kind)

    app.schedule("hourly", report, "short", every="1h")
    app.schedule("daily", report, "long", every="1d", count=1)
    await h.drain(through="2d")
    assert (reports.count("short"), reports.count("long")) == (48, 1)


async def test_after_an_outage_the_latest_instant_is_made_up_for(
    app: Faena, valkey: Server, midnight: datetime
) -> None:
    @app.every("1h")
    async def latest() -> None: ...

    @app.every("1h", missed="all(5)")
    async def five() -> None: ...

    @app.every("1h", missed="skip")
    async def none() -> None: ...

    async with harness(app, url=valkey.url, start=midnight) as h:
        h.clock.advance("1d15m")  # nobody was there
        report = await h.drain()
    assert Counter(ran.task for ran in report) == {"latest": 1, "five": 5}


async def test_operators_change_schedules_while_they_run(app: Faena, h: Harness) -> None:
    @app.every("1h")
    async def tick() -> None: ...

    await app.schedules.edit("tick", every="10m", by="ana")
    assert len(await h.drain(through="1h")) == 6
    await app.schedules.pause("tick")
    assert len(await h.drain(through="1h")) == 0
    await app.schedules.resume("tick")
    await app.schedules.reset("tick")
    assert (await app.schedules.get("tick")).when == "every 1h"
    assert len(await app.schedules.next("tick", 5)) == 5
