"""The client follows live while it can, polls while it cannot, and misses no move."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import httpx
import pytest
from apps.campotech.system import System
from apps.campotech.tracking.adaptive import AdaptiveTracking, TrackingRefused

from tests._support.eventually import eventually
from tests.apps.campotech.api.tracked import job_of, position, report, technician
from tests.apps.campotech.business import Business


class Naps:
    """Sleeps that end when the test says so."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self._end = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        if seconds:
            self._end.clear()
            await self._end.wait()

    def end(self) -> None:
        self._end.set()


@asynccontextmanager
async def following(client: AdaptiveTracking) -> AsyncIterator[list[float]]:
    """The latitudes that it has seen so far."""
    seen = list[float]()

    async def follow() -> None:
        async with aclosing(client.positions()) as positions:
            async for one in positions:
                seen.append(one.latitude)

    task = asyncio.create_task(follow())
    try:
        yield seen
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_it_follows_live_polls_while_degraded_and_follows_again(
    api: httpx.AsyncClient, system: System, business: Business
) -> None:
    juan, naps = await technician(business), Naps()
    client = AdaptiveTracking(api, technician=juan, sleep=naps.sleep)
    await report(api, position(juan, latitude=1.0))
    async with following(client) as seen:
        await eventually(lambda: client.mode == "realtime" and seen == [1.0])
        await report(api, position(juan, latitude=2.0))
        await eventually(lambda: seen == [1.0, 2.0])

        await system.features.tracking.set("degraded", by="ana")
        await eventually(lambda: client.mode == "polling" and naps.asked[-1:] == [30])
        await report(api, position(juan, latitude=3.0))
        naps.end()
        await eventually(lambda: seen == [1.0, 2.0, 3.0] and naps.asked[-2:] == [30, 30])

        await system.features.tracking.clear(by="ana")
        await report(api, position(juan, latitude=4.0))
        naps.end()
        await eventually(lambda: client.mode == "realtime" and seen[-1] == 4.0)
        await report(api, position(juan, latitude=5.0))
        await eventually(lambda: seen == [1.0, 2.0, 3.0, 4.0, 5.0])


async def test_it_polls_where_no_websocket_comes_through(
    api: httpx.AsyncClient, business: Business, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_given: object, **_options: object) -> None:
        raise OSError("the network lets no WebSocket through")

    monkeypatch.setattr("apps.campotech.tracking.adaptive.connect", refuse)
    juan, naps = await technician(business), Naps()
    await report(api, position(juan, latitude=1.0))
    async with following(AdaptiveTracking(api, technician=juan, sleep=naps.sleep)) as seen:
        await eventually(lambda: naps.asked == [0, 1] and seen == [1.0])
        await report(api, position(juan, latitude=2.0))
        naps.end()
        await eventually(lambda: naps.asked == [0, 1, 3] and seen == [1.0, 2.0])


async def test_it_ends_with_the_job(api: httpx.AsyncClient, business: Business) -> None:
    job = await job_of(business, await technician(business), "completed")
    async with aclosing(AdaptiveTracking(api, job=job).positions()) as positions:
        assert [one async for one in positions] == []


async def test_a_server_that_is_away_is_asked_again(api: httpx.AsyncClient) -> None:
    naps = Naps()
    async with httpx.AsyncClient(base_url="http://127.0.0.1:9", trust_env=False) as nowhere:
        client = AdaptiveTracking(nowhere, sleep=naps.sleep)
        async with following(client) as seen:
            await eventually(lambda: naps.asked == [30])
            naps.end()
            await eventually(lambda: naps.asked == [30, 30])
            assert (seen, client.mode) == ([], "polling")


async def test_a_token_that_is_not_known_is_an_error(url: str) -> None:
    async with httpx.AsyncClient(base_url=url, trust_env=False) as nobody:
        with pytest.raises(TrackingRefused, match="401"):
            await anext(AdaptiveTracking(nobody).positions())
