"""An organisation gets back what was archived of it, and nothing of another one."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from apps.campotech.system import System
from apps.sandbox.sandbox import Sandbox

from faena.testing import Harness
from tests.apps.campotech.api.test_jobs import store
from tests.apps.campotech.business import Business
from tests.apps.campotech.outbox import settle

OLD = datetime.now(UTC).replace(day=15) - timedelta(days=3 * 365)
YEAR = {"table": "jobs", "startDate": f"{OLD.year}-01-01", "endDate": f"{OLD.year}-12-31"}


@pytest.fixture
async def archived(business: Business, system: System, sandbox: Sandbox) -> Business:
    """Two jobs of `business` and one of another organisation are in the archive."""
    other = await Business.make(system, sandbox, number="2")
    await system.pg.partitioned_table("campotech.jobs").ensure(since=OLD.date())
    for whose in (business, business, other):
        await store(whose, "completed", at=OLD)
    (done,) = await system.pg.archive("campotech.jobs")
    assert (done.rows, done.problem) == (3, None)
    return business


async def ready(api: httpx.AsyncClient, system: System, harnessed: Harness) -> dict[str, Any]:
    """Ask for the year, and wait until its file is there."""
    asked = await api.get("/api/v1/archives", params=YEAR)
    assert (asked.status_code, asked.json()["state"]) == (202, "waiting")
    await settle(system, harnessed)
    found = await api.get(asked.headers["location"])
    assert (found.status_code, found.json()["state"]) == (200, "ready")
    return found.json()


async def test_a_job_collects_the_rows_and_a_link_leads_to_them(
    api: httpx.AsyncClient, archived: Business, system: System, harnessed: Harness
) -> None:
    found = await ready(api, system, harnessed)
    assert found["rows"] == 2
    file = await api.get(urlsplit(found["link"]).path)
    assert file.status_code == 200
    lines = [json.loads(line) for line in gzip.decompress(file.content).splitlines()]
    assert [line["organization_id"] for line in lines] == [str(archived.id)] * 2
    left = datetime.fromisoformat(found["linkExpiresAt"]) - datetime.now(UTC)
    assert timedelta(0) < left <= timedelta(hours=1)


async def test_the_same_request_finds_the_same_file_by_either_names(
    api: httpx.AsyncClient, archived: Business, system: System, harnessed: Harness
) -> None:
    found = await ready(api, system, harnessed)
    other = {"table": "jobs", "from": YEAR["startDate"], "to": YEAR["endDate"]}
    again = await api.get("/api/v1/archives", params=other)
    assert (again.status_code, again.json()["id"]) == (200, found["id"])


async def test_requests_and_links_of_another_organisation_are_refused(
    api: httpx.AsyncClient,
    archived: Business,
    system: System,
    harnessed: Harness,
    sandbox: Sandbox,
    url: str,
) -> None:
    found = await ready(api, system, harnessed)
    other = await Business.make(system, sandbox, number="3")
    theirs = {"authorization": f"Bearer {other.token}"}
    async with httpx.AsyncClient(base_url=url, headers=theirs, trust_env=False) as stranger:
        missing = await stranger.get(f"/api/v1/archives/{found['id']}")
        unknown = await stranger.get(f"/api/v1/archives/{'0' * 32}")
        assert missing.status_code == unknown.status_code == 404
        assert missing.json() == unknown.json()
        path = urlsplit(found["link"]).path
        assert (await stranger.get(path)).status_code == 403
        assert (await stranger.get(path, headers={"authorization": ""})).status_code == 401
        assert (await stranger.get(f"{path[:-1]}x")).status_code == 403


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"table": "invoices"}, "bad fields"),
        ({"table": "faena.jobs"}, "bad fields"),
        ({"startDate": "2024-01-01", "endDate": "2023-01-01"}, "must not be after"),
        ({"startDate": "0001-01-01"}, "startDate"),
        ({"startDate": "1999-12-31"}, "startDate"),
        ({"endDate": "9999-12-31"}, "endDate"),
        ({"endDate": f"{date.today().year + 2}-01-01"}, "endDate"),  # noqa: DTZ011 - any day
        ({"startDate": "2023-02-30"}, "startDate"),
        ({"startDate": "2023-01-01T00:00:00"}, "startDate"),
        ({"startDate": "x" * 41}, "bad fields"),
        ({"startDate": None}, "startDate"),
        ({"from": "2023-01-01"}, "startDate"),
    ],
)
async def test_what_makes_no_sense_is_a_problem(
    api: httpx.AsyncClient, change: dict[str, Any], words: str
) -> None:
    given = {name: value for name, value in {**YEAR, **change}.items() if value is not None}
    answer = await api.get("/api/v1/archives", params=given)
    assert (answer.status_code, words in answer.json()["detail"]) == (422, True)
    assert answer.headers["content-type"] == "application/problem+json"
