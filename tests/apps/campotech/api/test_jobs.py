"""Jobs over HTTP: completing one asks for its invoice, once, and pages open only their months."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from apps.campotech.jobs import page
from apps.campotech.system import System
from apps.sandbox.sandbox import Sandbox

from faena.testing import Harness
from tests.apps.campotech.business import Business
from tests.apps.campotech.outbox import settle
from tests.apps.campotech.sync.test_apply import message as sync_message
from tests.apps.campotech.sync.test_apply import operation

NOW = datetime.now(UTC)
ASKED = "SELECT queue, task, tenant FROM faena.outbox WHERE task = 'generate'"
JOB = "SELECT status, total_cents, completed_at IS NOT NULL FROM campotech.jobs WHERE id = %s"
PARTS = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'campotech.jobs'::regclass"
STORE = """
    INSERT INTO campotech.jobs (id, organization_id, customer_id, status, total_cents, created_at)
    VALUES (%s, %s, %s, %s, %s, %s)
"""


async def store(
    business: Business,
    status: str = "in_progress",
    *,
    total: int | None = 121_000,
    at: datetime = NOW,
    has_customer: bool = True,
) -> UUID:
    """A job of the field."""
    made = uuid4()
    customer = business.customer if has_customer else None
    async with business.system.pg.transaction() as connection:
        await connection.execute(STORE, [made, business.id, customer, status, total, at])
    return made


# -- its end --------------------------------------------------------------------------------------


async def test_a_completed_job_is_billed_and_asks_for_its_cae(
    api: httpx.AsyncClient, business: Business, harnessed: Harness
) -> None:
    job = await store(business)
    answer = await api.post(f"/api/v1/jobs/{job}/complete")
    assert (answer.status_code, answer.json()["invoice"]) == (202, "accepted")
    assert await business.rows(JOB, job) == [("completed", 121_000, True)]
    assert await business.rows(ASKED) == [("invoice.pdf", "generate", str(business.id))]
    await settle(business.system, harnessed)
    found = await api.get(f"/api/v1/invoices/{answer.json()['invoiceId']}")
    assert (found.status_code, found.json()["totalCents"]) == (200, 121_000)


async def test_completing_it_again_changes_nothing_and_asks_for_no_second_invoice(
    api: httpx.AsyncClient, business: Business
) -> None:
    job = await store(business)
    sent = [api.post(f"/api/v1/jobs/{job}/complete", json={}) for _ in range(5)]
    answers = [one.json() for one in await asyncio.gather(*sent)]
    assert sorted(one.pop("isNew") for one in answers) == [False] * 4 + [True]
    assert len({one["completedAt"] for one in answers if one.pop("id")}) == 1
    assert len(await business.rows(ASKED)) == 1


async def test_a_total_that_comes_later_makes_the_invoice_possible(
    api: httpx.AsyncClient, business: Business
) -> None:
    job = await store(business, total=None)
    first = await api.post(f"/api/v1/jobs/{job}/complete")
    assert (first.json()["invoice"], first.json()["invoiceId"]) == ("none", None)
    assert await business.rows(ASKED) == []
    said = {"totalCents": 50_000, "description": "cambio de cuerito"}
    second = await api.post(f"/api/v1/jobs/{job}/complete", json=said)
    assert (second.json()["invoice"], second.json()["isNew"]) == ("accepted", True)
    assert await business.rows(JOB, job) == [("completed", 50_000, True)]
    assert len(await business.rows(ASKED)) == 1


@pytest.mark.parametrize("status", ["draft", "cancelled"])
async def test_a_draft_and_a_cancelled_job_cannot_be_completed(
    api: httpx.AsyncClient, business: Business, status: str
) -> None:
    job = await store(business, status)
    answer = await api.post(f"/api/v1/jobs/{job}/complete")
    assert (answer.status_code, status in answer.json()["detail"]) == (409, True)
    assert await business.rows(JOB, job) == [(status, 121_000, False)]


async def test_another_organisation_can_neither_complete_nor_see_it(
    api: httpx.AsyncClient, business: Business, system: System, sandbox: Sandbox
) -> None:
    other = await Business.make(system, sandbox, number="2")
    job = await store(other)
    theirs = await api.post(f"/api/v1/jobs/{job}/complete")
    unknown = await api.post(f"/api/v1/jobs/{uuid4()}/complete")
    assert theirs.status_code == 404
    assert theirs.json() == unknown.json()
    assert await business.rows(JOB, job) == [("in_progress", 121_000, False)]
    assert (await api.get("/api/v1/jobs")).json()["jobs"] == []


async def test_a_phone_that_was_offline_does_not_open_a_completed_job_again(
    api: httpx.AsyncClient, business: Business, harnessed: Harness
) -> None:
    job = await store(business, "scheduled")
    await api.post(f"/api/v1/jobs/{job}/complete")
    late = operation(
        "status_change",
        serverId=str(job),
        at=600_000,
        data={"status": "in_progress"},
        vectorClock={"phone": 1},
    )
    sent = sync_message(late, org=business.id).model_dump(mode="json", by_alias=True)
    assert (await api.post("/api/v1/sync", json=sent)).status_code == 202
    await settle(business.system, harnessed)
    assert await business.rows(JOB, job) == [("completed", 121_000, True)]


@pytest.mark.parametrize(
    "said", [{"totalCents": -1}, {"totalCents": 1.5}, {"totalCents": 10**18}, {"status": "draft"},
             {"description": "a\0b"}],
)  # fmt: skip
async def test_bad_data_of_a_completion_are_refused(
    api: httpx.AsyncClient, business: Business, said: dict[str, Any]
) -> None:
    job = await store(business)
    answer = await api.post(f"/api/v1/jobs/{job}/complete", json=said)
    assert answer.status_code == 422
    assert await business.rows(JOB, job) == [("in_progress", 121_000, False)]


# -- pages ----------------------------------------------------------------------------------------


async def test_pages_have_each_job_once_with_the_newest_first(
    api: httpx.AsyncClient, business: Business
) -> None:
    same = NOW - timedelta(microseconds=5)
    made = {await store(business, at=same) for _ in range(4)} | {await store(business)}
    seen, cursor = list[str](), None
    for _ in range(3):
        given = {"limit": 2, **({} if cursor is None else {"cursor": cursor})}
        found = (await api.get("/api/v1/jobs", params=given)).json()
        seen += [one["id"] for one in found["jobs"]]
        cursor = found["nextCursor"]
    assert cursor is None
    assert len(seen) == 5
    assert {UUID(one) for one in seen} == made


async def test_since_and_until_are_days_or_instants(
    api: httpx.AsyncClient, business: Business
) -> None:
    await store(business)

    async def count(**given: str) -> int:
        return len((await api.get("/api/v1/jobs", params=given)).json()["jobs"])

    assert await count(since=f"{NOW:%Y-%m-%d}") == 1
    assert await count(since=NOW.isoformat()) == 1
    assert await count(since=(NOW + timedelta(seconds=1)).isoformat()) == 0
    assert await count(until=(NOW - timedelta(seconds=1)).isoformat()) == 0


@pytest.mark.parametrize(
    "query",
    ["since=yesterday", "since=2026-02-30", "since=9999-12-31", "since=1234", "cursor=x",
     "cursor=AAAA", "cursor=%C3%A9", "limit=0", "limit=201", "limit=x"],
)  # fmt: skip
async def test_a_bad_query_is_a_problem(api: httpx.AsyncClient, query: str) -> None:
    answer = await api.get(f"/api/v1/jobs?{query}")
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_recent_time_opens_only_its_months(business: Business) -> None:
    pg = business.system.pg
    await pg.partitioned_table("campotech.jobs").ensure(since=NOW.date() - timedelta(days=800))
    given = page.parameters(
        business.id, since=NOW - timedelta(days=3), until=NOW, after=None, most=51
    )
    async with pg.transaction() as connection:
        query = f"EXPLAIN (COSTS OFF) {page.QUERY}".encode()
        lines = await (await connection.execute(query, given)).fetchall()
    (parts,) = await business.rows(PARTS)
    plan = " ".join(row[0] for row in lines)
    opened = {word for word in plan.split() if word.startswith("jobs_y")}
    months = {f"jobs_y{at:%Ym%m}" for at in (NOW, NOW - timedelta(days=3))}
    assert {one.split("_organization")[0] for one in opened} == months
    assert parts[0] > 20
