"""Viewers see positions as they come, only those they may, and poll when they must."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from apps.campotech.api.app import create
from apps.campotech.api.live import PREFIX, PROTOCOL
from apps.campotech.system import System
from apps.campotech.tracking.hub import Bounds
from apps.sandbox.sandbox import Sandbox
from apps.sandbox.stand_in import serving
from websockets.exceptions import InvalidStatus

from tests._support.eventually import eventually
from tests.apps.campotech.api.tracked import (
    end_of,
    job_of,
    looking,
    next_positions,
    position,
    protocols,
    report,
    technician,
)
from tests.apps.campotech.business import Business


async def test_a_viewer_sees_where_everybody_is_and_then_each_move(
    api: httpx.AsyncClient, business: Business, url: str
) -> None:
    juan = await technician(business)
    await report(api, position(juan, ago_s=60, latitude=1.0))
    async with looking(url, await protocols(api)) as websocket:
        assert [one["latitude"] for one in await next_positions(websocket)] == [1.0]
        await report(api, position(juan, latitude=2.0))
        assert [one["latitude"] for one in await next_positions(websocket)] == [2.0]


async def test_a_viewer_at_another_process_sees_it_too(
    system: System, api: httpx.AsyncClient, business: Business
) -> None:
    juan = await technician(business)
    async with (
        serving(create(system), has_websockets=True) as elsewhere,
        looking(elsewhere, await protocols(api)) as websocket,
    ):
        await report(api, position(juan))
        (shown,) = await next_positions(websocket)
        assert shown["technicianId"] == str(juan)


async def test_a_viewer_sees_neither_other_technicians_nor_other_organisations(
    api: httpx.AsyncClient, business: Business, system: System, sandbox: Sandbox, url: str
) -> None:
    other = await Business.make(system, sandbox, number="2")
    juan, ana, foreign = [await technician(one) for one in (business, business, other)]
    theirs = {"authorization": f"Bearer {other.token}"}
    async with (
        httpx.AsyncClient(base_url=url, headers=theirs, trust_env=False) as stranger,
        looking(url, await protocols(api, technicianId=str(juan))) as websocket,
        looking(url, await protocols(stranger)) as wide,
    ):
        await report(stranger, position(foreign))
        assert [one["technicianId"] for one in await next_positions(wide)] == [str(foreign)]
        await report(api, position(ana))
        await report(api, position(juan))
        assert [one["technicianId"] for one in await next_positions(websocket)] == [str(juan)]
        await report(stranger, position(foreign, latitude=3.0))
        assert [one["latitude"] for one in await next_positions(wide)] == [3.0]


async def test_degraded_live_views_send_viewers_to_polling(
    api: httpx.AsyncClient, system: System, business: Business, url: str
) -> None:
    shown = await protocols(api)
    async with looking(url, shown) as websocket:
        assert json.loads(await websocket.recv()) == {"type": "positions", "positions": []}
        await system.features.tracking.set("degraded", by="ana")
        told = json.loads(await websocket.recv())
        assert told == {"type": "poll", "intervalS": 30, "path": "/api/v1/tracking"}
        assert (await end_of(websocket))[0] == 1013
    async with looking(url, shown) as late:
        assert json.loads(await late.recv())["type"] == "poll"


async def test_a_job_is_shown_until_it_ends(
    api: httpx.AsyncClient, business: Business, system: System
) -> None:
    juan = await technician(business)
    job = await job_of(business, juan)
    web = create(system)
    web.state.tracking.interval_s = 0.1
    async with (
        serving(web, has_websockets=True) as url,
        looking(url, await protocols(api, jobId=str(job))) as websocket,
    ):
        await report(api, position(juan))
        assert len(await next_positions(websocket)) == 1
        await api.post(f"/api/v1/jobs/{job}/complete")
        assert json.loads(await websocket.recv()) == {"type": "ended"}


def tickets(system: System) -> list[list[str]]:
    """Protocols that open nothing."""
    issued = create(system).state.tracking.tickets
    old = issued.issue(b'["a", null, null]', at=datetime.now(UTC) - timedelta(minutes=2))
    names = ["", "x", "x" * 2000, old]
    return [[PROTOCOL], *([PROTOCOL, f"{PREFIX}{one}"] for one in names if one)]


async def test_without_a_ticket_that_is_good_nobody_looks(system: System, url: str) -> None:
    for shown in tickets(system):
        with pytest.raises(InvalidStatus) as refused:
            async with looking(url, shown):
                pass
        assert refused.value.response.status_code == 401
        assert refused.value.response.headers["content-type"] == "application/problem+json"


async def test_a_viewer_who_talks_is_sent_away(api: httpx.AsyncClient, url: str) -> None:
    async with looking(url, await protocols(api)) as websocket:
        await websocket.send("hello")
        assert await end_of(websocket) == (1008, "a viewer sends nothing")


async def test_viewers_of_an_organisation_are_bounded_and_leave_their_places(
    api: httpx.AsyncClient, system: System, business: Business, sandbox: Sandbox
) -> None:
    web = create(system, Bounds(viewers=3, of_organization=2))
    hub = web.state.tracking.hub
    async with serving(web, has_websockets=True) as url:
        async with looking(url, await protocols(api)), looking(url, await protocols(api)):
            with pytest.raises(InvalidStatus) as refused:
                async with looking(url, await protocols(api)):
                    pass
            assert refused.value.response.status_code == 503
        await eventually(lambda: len(hub) == 0)
        async with looking(url, await protocols(api)):
            assert len(hub) == 1


async def test_a_viewer_shows_a_new_ticket_after_a_while(
    api: httpx.AsyncClient, system: System, business: Business
) -> None:
    web = create(system, Bounds(longest_s=0.1))
    async with (
        serving(web, has_websockets=True) as url,
        looking(url, await protocols(api)) as websocket,
    ):
        assert await end_of(websocket) == (1000, "renew")


async def test_a_viewer_that_takes_nothing_is_dropped(
    api: httpx.AsyncClient, system: System, business: Business
) -> None:
    """As the server calls it: a peer that does not read makes `send` wait."""
    web = create(system, Bounds(send_s=0.1))
    shown, sent = await protocols(api), list[str]()
    inbox = asyncio.Queue[dict[str, Any]]()
    inbox.put_nowait({"type": "websocket.connect"})

    async def send(message: Any) -> None:
        sent.append(message["type"])
        if message["type"] == "websocket.send":
            await asyncio.Event().wait()

    scope = {
        "type": "websocket",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "scheme": "ws",
        "path": "/api/v1/tracking/live",
        "raw_path": b"/api/v1/tracking/live",
        "root_path": "",
        "query_string": b"",
        "headers": [],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        "subprotocols": shown,
        "state": {},
        "extensions": {},
    }
    await asyncio.wait_for(web(scope, inbox.get, send), timeout=60)
    assert sent == ["websocket.accept", "websocket.send"]
    assert len(web.state.tracking.hub) == 0


async def test_a_slow_viewer_holds_one_position_of_each_technician(
    api: httpx.AsyncClient, system: System, business: Business
) -> None:
    web = create(system)
    tracking = web.state.tracking
    juan = await technician(business)
    watch = tracking.read(await protocols(api))
    assert watch is not None
    viewer = tracking.hub.join(watch)
    viewer.watched = viewer.watched._replace(is_nobody=False)
    try:
        for latitude in range(5):
            await report(api, position(juan, latitude=float(latitude)))
        await eventually(lambda: [one.latitude for one in viewer._waiting.values()] == [4.0])
    finally:
        await tracking.hub.leave(viewer)
