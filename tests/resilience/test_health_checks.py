"""Health checks of features: when they run, who runs them, and what their failures mean."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from faena import Faena, Feature
from faena.engine.calls.features import FeatureCalls
from faena.resilience.health_check import HealthChecker
from tests._support.eventually import eventually
from tests._support.rig import SECOND, T0, Clock
from tests._support.working import Working


@pytest.fixture
async def clock(shop: Faena) -> AsyncIterator[Clock]:
    """The server's time, which stands still."""
    clock = Clock(T0)
    with shop.override(clock=clock):
        yield clock
        await shop.close()


async def _checker(app: Faena, run: Callable[[], Awaitable[Any]], **options: Any) -> HealthChecker:
    """What a worker runs for the feature `tracking`."""
    app.feature("tracking", message="refresh by hand")
    app.health_check("tracking", **options)(run)
    await app.features()  # the server knows of it
    return await _another(app)


async def _another(app: Faena, **options: Any) -> HealthChecker:
    engine = (await app.runtime()).engine
    return HealthChecker(FeatureCalls(engine), list(app.features.checks.values()), **options)


async def test_a_check_that_fails_is_run_again_until_it_does_not(shop: Faena, clock: Clock) -> None:
    refused = ConnectionRefusedError("no")
    problems = iter([refused, refused, None])

    async def ask() -> None:
        if problem := next(problems):
            raise problem

    checker = await _checker(shop, ask, every="30s", failures=2, when_failing="degraded")
    feature, check = shop.features["tracking"], shop.features.checks["tracking"]
    states: list[str] = []
    for _ in range(3):
        assert await checker.run_once(check) == 30 * SECOND
        states.append((await feature.view()).state)
        if states[-1] == "degraded":
            await _is_told(feature)
        clock.go(30)
    assert states == ["healthy", "degraded", "healthy"]


async def _is_told(feature: Feature) -> None:
    view = await feature.view()
    assert (view.source, view.message) == ("check", "refresh by hand")
    assert view.reason == "ConnectionRefusedError: no"
    assert (view.sources[0].message, view.sources[0].reason) == (None, view.reason)


async def test_a_check_is_not_run_before_it_is_due(shop: Faena, clock: Clock) -> None:
    runs: list[int] = []

    async def ask() -> None:
        runs.append(clock.now)

    checker = await _checker(shop, ask, every="30s")
    check = shop.features.checks["tracking"]
    await checker.run_once(check)
    clock.go(10)
    assert await checker.run_once(check) == 20 * SECOND
    clock.go(20)
    await checker.run_once(check)
    assert runs == [T0, T0 + 30 * SECOND]


async def test_one_process_runs_a_check_at_a_time(shop: Faena, clock: Clock) -> None:
    runs: list[int] = []
    can_end = asyncio.Event()

    async def ask() -> None:
        runs.append(clock.now)
        await can_end.wait()

    one = await _checker(shop, ask, every="1s", timeout="30s")
    other, check = await _another(shop), shop.features.checks["tracking"]
    running = asyncio.create_task(one.run_once(check))
    await eventually(lambda: runs)
    assert await other.run_once(check) == 35 * SECOND, "until it must be taken for dead"
    can_end.set()
    await running
    assert len(runs) == 1
    clock.go(1)
    await other.run_once(check)
    assert len(runs) == 2, "whoever asks first goes on"


async def test_a_worker_sleeps_between_two_runs(shop: Faena, clock: Clock) -> None:
    runs: list[int] = []
    enough = asyncio.Event()

    async def ask() -> None:
        runs.append(clock.now)

    async def sleep(seconds: float) -> None:
        assert 30 <= seconds <= 31.5
        clock.go(seconds)
        if len(runs) == 5:
            enough.set()
            await asyncio.Event().wait()

    await _checker(shop, ask, every="30s")
    running = asyncio.create_task((await _another(shop, sleep=sleep)).run())
    async with asyncio.timeout(60):
        await enough.wait()
    running.cancel()
    await asyncio.wait([running])
    assert len(runs) == 5


async def test_a_worker_runs_checks_and_one_that_takes_too_long_has_failed(
    shop: Faena, working: Working
) -> None:
    shop.queue("any")
    feature = shop.feature("tracking")

    @shop.health_check("tracking", every="1d", timeout="10ms", failures=1)
    async def ask() -> None:
        await asyncio.Event().wait()

    async with working(shop):
        await eventually(lambda: feature.state == "offline")
        assert (feature.now.message, feature.now.reason) == (None, "no answer within 10ms")
