"""What organisations send in is stored with its job, once, and only in their own name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
from apps.campotech.system import System
from apps.sandbox.sandbox import Sandbox

from faena.testing import Harness
from tests.apps.campotech.business import Business
from tests.apps.campotech.outbox import settle
from tests.apps.campotech.sync.test_apply import message as sync_message
from tests.apps.campotech.sync.test_apply import operation

KEY = {"idempotency-key": "invoice-key-000001"}
MESSAGE = {
    "idempotencyKey": "message-key-0001",
    "createdAt": "2026-11-18T12:00:00Z",
    "messageType": "text",
    "text": "hola",
}
OUTBOX = "SELECT queue, task, tenant FROM faena.outbox ORDER BY number"


def invoice(business: Business, **given: Any) -> dict[str, Any]:
    made = {"customerId": str(business.customer), "invoiceType": "B", "puntoVenta": 1}
    return {**made, "net": "1000.00", "description": "caldera", **given}


async def test_an_invoice_is_accepted_with_its_job(
    api: httpx.AsyncClient, business: Business
) -> None:
    answer = await api.post("/api/v1/invoices", json=invoice(business), headers=KEY)
    assert (answer.status_code, answer.json()["status"]) == (202, "accepted")
    assert await business.rows(OUTBOX) == [("afip.invoice", "request_cae", str(business.id))]
    found = (await api.get(f"/api/v1/invoices/{answer.json()['id']}")).json()
    assert (found["status"], found["totalCents"]) == ("pending", 121_000)


async def test_the_same_key_is_the_same_invoice(api: httpx.AsyncClient, business: Business) -> None:
    first, again = [
        await api.post("/api/v1/invoices", json=invoice(business), headers=KEY) for _ in range(2)
    ]
    assert again.json() == {"id": first.json()["id"], "status": "known"}
    for changed in ({"net": "1.00"}, {"jobId": str(uuid4())}):
        other = await api.post("/api/v1/invoices", json=invoice(business, **changed), headers=KEY)
        assert other.status_code == 409
    assert len(await business.rows(OUTBOX)) == 1


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"puntoVenta": 0}, "puntoVenta"),
        ({"puntoVenta": 99_999}, "puntoVenta"),
        ({"puntoVenta": "1"}, "puntoVenta"),
        ({"invoiceType": "X"}, "invoiceType"),
        ({"net": "-1"}, "net"),
        ({"net": "0.001"}, "net"),
        ({"net": "1e3"}, "net"),
        ({"customerId": "ana"}, "customerId"),
        ({"odd": 1}, "odd"),
    ],
)
async def test_a_bad_field_is_named_and_not_repeated(
    api: httpx.AsyncClient, business: Business, given: dict[str, Any], field: str
) -> None:
    answer = await api.post("/api/v1/invoices", json=invoice(business, **given), headers=KEY)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert [one["field"] for one in answer.json()["errors"]] == [field]
    assert await business.rows(OUTBOX) == []


@pytest.mark.parametrize(
    ("given", "status"),
    [({"net": "9999999999999.99"}, 422), ({"description": "a\0b"}, 422)],
)
async def test_what_cannot_be_stored_is_refused_and_not_an_accident(
    api: httpx.AsyncClient, business: Business, given: dict[str, Any], status: int
) -> None:
    answer = await api.post("/api/v1/invoices", json=invoice(business, **given), headers=KEY)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


async def test_another_organisation_sees_and_uses_nothing_of_this_one(
    api: httpx.AsyncClient, business: Business, system: System, sandbox: Sandbox, url: str
) -> None:
    made = await api.post("/api/v1/invoices", json=invoice(business), headers=KEY)
    other = await Business.make(system, sandbox, number="2")
    theirs = {"authorization": f"Bearer {other.token}"}
    async with httpx.AsyncClient(base_url=url, headers=theirs, trust_env=False) as stranger:
        missing = await stranger.get(f"/api/v1/invoices/{made.json()['id']}")
        unknown = await stranger.get(f"/api/v1/invoices/{uuid4()}")
        assert missing.status_code == unknown.status_code == 404
        assert missing.json() == unknown.json()
        used = await stranger.post("/api/v1/invoices", json=invoice(business), headers=KEY)
        assert (used.status_code, "customerId" in used.json()["detail"]) == (422, True)
        foreign = sync_message(operation(), org=business.id)
        sent = await stranger.post(
            "/api/v1/sync", json=foreign.model_dump(mode="json", by_alias=True)
        )
        assert sent.status_code == 403
        text = {**MESSAGE, "orgId": str(business.id), "recipientPhone": business.phone}
        assert (await stranger.post("/api/v1/messages", json=text)).status_code == 403


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer x", "Basic abc", "Bearer " + "x" * 999]
)
async def test_without_a_known_token_nothing_is_accepted(
    url: str, business: Business, header: str | None
) -> None:
    headers = {} if header is None else {"authorization": header}
    async with httpx.AsyncClient(base_url=url, trust_env=False) as nobody:
        answer = await nobody.post(
            "/api/v1/invoices", json=invoice(business), headers={**headers, **KEY}
        )
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert (await nobody.get("/api/admin/costs", headers=headers)).status_code == 401
    assert await business.rows(OUTBOX) == []


async def test_what_a_device_did_becomes_a_job_for_each_entity(
    api: httpx.AsyncClient, business: Business
) -> None:
    sent = sync_message(operation(localId="a"), operation(localId="b"), org=business.id)
    body = sent.model_dump(mode="json", by_alias=True)
    first, again = [await api.post("/api/v1/sync", json=body) for _ in range(2)]
    assert first.status_code == 202
    assert first.json() == again.json()
    assert len(await business.rows(OUTBOX)) == 2


async def test_the_same_changes_under_another_key_are_the_same_jobs(
    api: httpx.AsyncClient, business: Business
) -> None:
    sent = [sync_message(operation(localId="a"), org=business.id) for _ in range(2)]
    bodies = [one.model_dump(mode="json", by_alias=True) for one in sent]
    first, again = [await api.post("/api/v1/sync", json=one) for one in bodies]
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json() == again.json()
    assert len(await business.rows(OUTBOX)) == 1


@pytest.mark.parametrize(
    ("net", "status"),
    [("8264462809917.35", 202), ("8264462809917.36", 422), ("9999999999999.99", 422)],
)
async def test_an_invoice_is_refused_whose_total_is_too_large_with_its_vat(
    api: httpx.AsyncClient, business: Business, net: str, status: int
) -> None:
    answer = await api.post("/api/v1/invoices", json=invoice(business, net=net), headers=KEY)
    assert answer.status_code == status
    assert len(await business.rows(OUTBOX)) == (status == 202)


@pytest.mark.parametrize(
    "given",
    [
        {"text": "a\0b"},
        {"messageType": "media", "mediaUrl": "http://a/x", "mediaCaption": "\0", "text": None},
        {"messageType": "template", "templateName": "x", "templateParams": ["\0"], "text": None},
        {"createdAt": "9999-12-31T23:59:59Z"},
    ],
)
async def test_a_message_that_could_never_be_sent_is_refused(
    api: httpx.AsyncClient, business: Business, given: dict[str, Any]
) -> None:
    message = {
        "orgId": str(business.id),
        "idempotencyKey": "message-key-000001",
        "createdAt": datetime.now(UTC).isoformat(),
        "messageType": "text",
        "recipientPhone": business.phone,
        "text": "hola",
        **given,
    }
    message = {name: value for name, value in message.items() if value is not None}
    answer = await api.post("/api/v1/messages", json=message)
    assert answer.status_code == 422


async def test_a_message_is_sent_once(api: httpx.AsyncClient, business: Business) -> None:
    message = {**MESSAGE, "orgId": str(business.id), "recipientPhone": business.phone}
    answers = [await api.post("/api/v1/messages", json=message) for _ in range(2)]
    assert [one.json()["status"] for one in answers] == ["created", "duplicate"]
    wrong = await api.post("/api/v1/messages", json={**message, "recipientPhone": "+1 555"})
    assert wrong.json()["errors"][0]["field"] == "recipientPhone"


async def test_a_message_is_sent_once_also_when_the_broker_has_forgotten_it(
    api: httpx.AsyncClient, business: Business, harnessed: Harness, sandbox: Sandbox
) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    message = {**MESSAGE, "orgId": str(business.id), "recipientPhone": business.phone}
    template = {"messageType": "template", "templateName": "job_completed", "templateParams": ["A"]}
    message = {**message, **template}
    del message["text"]
    for microsecond in (100, 900_000):
        at = now.replace(microsecond=microsecond).isoformat()
        answer = await api.post("/api/v1/messages", json={**message, "createdAt": at})
        assert answer.json()["status"] == "created"
        await settle(business.system, harnessed)
        await business.system.queues["whatsapp.outbound"].clean("completed", age=timedelta(0))
    assert len(sandbox.whatsapp.conversation.sent) == 1
