"""Positions are stored once, and polled by their own organisation."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
from apps.campotech.system import System
from apps.campotech.tracking.position import Position
from apps.campotech.tracking.writer import Busy, Unstorable, Writer
from apps.sandbox.sandbox import Sandbox

from tests.apps.campotech.api.tracked import job_of, position, report, technician
from tests.apps.campotech.business import Business

STORED = "SELECT count(*) FROM campotech.technician_locations WHERE organization_id = %s"


async def poll(api: httpx.AsyncClient, **query: Any) -> dict[str, Any]:
    answer = await api.get("/api/v1/tracking", params=query)
    assert answer.status_code == 200
    return answer.json()


# -- devices --------------------------------------------------------------------------------------


async def test_reports_are_stored_once_and_the_last_one_is_shown(
    api: httpx.AsyncClient, business: Business
) -> None:
    juan = await technician(business)
    sent = [position(juan, ago_s=ago, latitude=-ago / 10) for ago in (1, 30, 60)]
    answers = [await report(api, *sent) for _ in range(2)]
    assert [one.json() for one in answers] == [{"stored": 3, "ignored": 0}] * 2
    assert await business.rows(STORED, business.id) == [(3,)]
    (shown,) = (await poll(api))["positions"]
    assert (shown["technicianId"], shown["latitude"]) == (str(juan), -0.1)


async def test_a_report_that_comes_late_does_not_move_anybody_back(
    api: httpx.AsyncClient, business: Business
) -> None:
    juan = await technician(business)
    for ago, latitude in ((1, 1.0), (60, 2.0)):
        await report(api, position(juan, ago_s=ago, latitude=latitude))
    (shown,) = (await poll(api))["positions"]
    assert shown["latitude"] == 1.0


async def test_many_devices_at_once_share_statements(
    system: System, api: httpx.AsyncClient, business: Business
) -> None:
    everybody = [await technician(business) for _ in range(40)]
    sent = [report(api, position(one)) for one in everybody]
    assert {one.status_code for one in await asyncio.gather(*sent)} == {202}
    found = await business.rows(
        "SELECT count(*), count(DISTINCT xmin::text) FROM campotech.technician_positions"
    )
    assert found[0][0] == 40
    assert found[0][1] < 40


async def test_a_clock_that_is_wrong_is_ignored(api: httpx.AsyncClient, business: Business) -> None:
    juan = await technician(business)
    sent = [position(juan, ago_s=ago) for ago in (0, -600, 8 * 86_400)]
    assert (await report(api, *sent)).json() == {"stored": 1, "ignored": 2}


@pytest.mark.parametrize(
    "bad",
    [{"latitude": 90.1}, {"longitude": -181}, {"latitude": "1"}, {"accuracy": -1},
     {"recordedAt": 1}, {"technicianId": "juan"}, {"odd": 1}, {"latitude": None}],
)  # fmt: skip
async def test_a_bad_position_spoils_its_report(
    api: httpx.AsyncClient, business: Business, bad: dict[str, Any]
) -> None:
    juan = await technician(business)
    answer = await report(api, position(juan), position(juan, **bad))
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"].startswith("positions.1.")
    assert await business.rows(STORED, business.id) == [(0,)]


async def test_what_is_no_number_is_refused(api: httpx.AsyncClient, business: Business) -> None:
    juan = await technician(business)
    content = json.dumps({"positions": [position(juan, latitude=float("nan"))]})
    headers = {"content-type": "application/json"}
    answer = await api.post("/api/v1/tracking/positions", content=content, headers=headers)
    assert answer.status_code == 422


async def test_a_report_has_positions_and_not_too_many(
    api: httpx.AsyncClient, business: Business
) -> None:
    juan = await technician(business)
    for many in (0, 501):
        assert (await report(api, *[position(juan)] * many)).status_code == 422


async def test_nobody_reports_for_a_technician_of_another_organisation(
    api: httpx.AsyncClient, system: System, business: Business, sandbox: Sandbox
) -> None:
    other = await Business.make(system, sandbox, number="2")
    foreign, own = await technician(other), await technician(business)
    assert (await report(api, position(own), position(foreign))).status_code == 422
    assert await business.rows("SELECT count(*) FROM campotech.technician_locations") == [(0,)]


# -- the writer -----------------------------------------------------------------------------------


def at(business: Business, when: datetime) -> Position:
    return Position(
        organization=business.id, technician=uuid4(), latitude=1, longitude=1, recorded_at=when
    )


async def test_a_position_without_a_partition_spoils_no_other_request(
    system: System, business: Business
) -> None:
    writer, now = Writer(system.pg), datetime.now(UTC)
    good = [at(business, now) for _ in range(5)]
    bad = at(business, now - timedelta(days=4000))
    ends = await asyncio.gather(
        *(writer.store([one]) for one in [*good[:3], bad, *good[3:]]), return_exceptions=True
    )
    assert [type(one) for one in ends] == [type(None)] * 3 + [Unstorable] + [type(None)] * 2
    assert await business.rows(STORED, business.id) == [(5,)]


async def test_what_waits_is_bounded(system: System, business: Business) -> None:
    writer, now = Writer(system.pg, most=3), datetime.now(UTC)
    many, one = [at(business, now) for _ in range(3)], [at(business, now)]
    ends = await asyncio.gather(writer.store(many), writer.store(one), return_exceptions=True)
    assert [type(end) for end in ends] == [type(None), Busy]
    await writer.store(one)


# -- viewers who poll -----------------------------------------------------------------------------


async def test_a_viewer_gets_what_has_come_since(
    api: httpx.AsyncClient, business: Business
) -> None:
    juan = await technician(business)
    await report(api, position(juan))
    first = await poll(api)
    assert (first["mode"], first["intervalS"], len(first["positions"])) == ("realtime", 30, 1)
    later = (datetime.now(UTC) + timedelta(minutes=1)).isoformat()
    assert (await poll(api, since=later))["positions"] == []
    assert len((await poll(api, since=first["since"]))["positions"]) == 1


async def test_a_viewer_of_a_job_sees_who_does_it_until_its_end(
    api: httpx.AsyncClient, business: Business
) -> None:
    juan, ana = await technician(business), await technician(business)
    await report(api, position(juan), position(ana))
    job, nobodys = await job_of(business, ana), await job_of(business, None)
    (shown,) = (await poll(api, jobId=str(job)))["positions"]
    assert shown["technicianId"] == str(ana)
    assert (await poll(api, jobId=str(nobodys)))["positions"] == []
    await api.post(f"/api/v1/jobs/{job}/complete")
    ended = await poll(api, jobId=str(job))
    assert (ended["positions"], ended["isOver"]) == ([], True)


async def test_another_organisation_sees_nobody(
    api: httpx.AsyncClient, business: Business, system: System, sandbox: Sandbox, url: str
) -> None:
    juan = await technician(business)
    job = await job_of(business, juan)
    await report(api, position(juan))
    other = await Business.make(system, sandbox, number="2")
    theirs = {"authorization": f"Bearer {other.token}"}
    async with httpx.AsyncClient(base_url=url, headers=theirs, trust_env=False) as stranger:
        assert (await poll(stranger))["positions"] == []
        for one in ({"technicianId": str(juan)}, {"jobId": str(job)}):
            assert (await stranger.get("/api/v1/tracking", params=one)).status_code == 404
            assert (await stranger.post("/api/v1/tracking/tickets", json=one)).status_code == 404


async def test_polling_goes_on_while_live_views_are_degraded(
    api: httpx.AsyncClient, business: Business, system: System
) -> None:
    await report(api, position(await technician(business)))
    await system.features.tracking.set("degraded", by="ana")
    found = await poll(api)
    assert (found["mode"], len(found["positions"])) == ("polling", 1)
