"""Webhooks are believed when they are signed, taken in once, and never answered with more."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import uuid4

import httpx
import pytest
from apps.campotech.system import System
from apps.providers import mercadopago
from apps.sandbox.sandbox import Sandbox

from faena.testing import Harness
from tests.apps.campotech.business import Business
from tests.apps.campotech.outbox import relay
from tests.apps.campotech.payments.test_take import paid, pay

OUTBOX = "SELECT queue, tenant FROM faena.outbox ORDER BY number"
SEEN = "SELECT direction, kind, content FROM campotech.whatsapp_messages"


async def test_a_payment_is_taken_in_once(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox, url: str
) -> None:
    invoice = await business.invoice()
    payment = await pay(system, sandbox, invoice, 100_00)
    address = f"{url}/webhooks/mercadopago/{business.id}"
    told = await sandbox.mercadopago.notify(address, payment.id)
    again = await sandbox.mercadopago.replay(told)
    assert (told.status, again.status) == (200, 200)
    assert await business.rows(OUTBOX) == [("payment.webhook", str(business.id))]


async def test_each_change_of_a_payment_is_a_job_of_its_own(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox, url: str
) -> None:
    client = mercadopago.Client(system.settings.mercadopago, system.http)
    item = mercadopago.Item(title="Visita", unit_price_centavos=100_00)
    made = await client.create_preference(
        mercadopago.Preference(items=[item], external_reference="r")
    )
    payment = sandbox.mercadopago.pay(made.id, "pending")
    address = f"{url}/webhooks/mercadopago/{business.id}"
    first = await sandbox.mercadopago.notify(address, payment.id)
    sandbox.mercadopago.settle(payment.id, "approved")
    second = await sandbox.mercadopago.notify(address, payment.id)
    assert (first.status, second.status) == (200, 200)
    assert await business.rows(OUTBOX) == [("payment.webhook", str(business.id))] * 2


async def test_what_is_not_signed_by_mercadopago_changes_nothing(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox, url: str
) -> None:
    payment = await pay(system, sandbox, uuid4(), 100_00)
    address = f"{url}/webhooks/mercadopago/{business.id}"
    sandbox.mercadopago.webhook_secret = "another secret of somebody else"
    forged = await sandbox.mercadopago.notify(address, payment.id)
    assert forged.status == 401
    async with httpx.AsyncClient(trust_env=False) as client:
        bare = await client.post(f"{address}?data.id=1&type=payment", json={"id": 1})
        assert bare.status_code == 401
        huge = await client.post(address, content=b"x" * (5 << 20))
        assert huge.status_code == 413
    assert await business.rows(OUTBOX) == []


async def test_a_payment_for_an_unknown_organisation_is_refused(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox, url: str
) -> None:
    payment = await pay(system, sandbox, uuid4(), 100_00)
    told = await sandbox.mercadopago.notify(f"{url}/webhooks/mercadopago/{uuid4()}", payment.id)
    assert told.status == 404
    assert await business.rows(OUTBOX) == []
    assert await paid(business, await business.invoice()) == 0


async def test_a_notification_that_was_sent_elsewhere_before_is_still_taken_in(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox, url: str
) -> None:
    other = await Business.make(system, sandbox, number="another number")
    invoice = await business.invoice()
    payment = await pay(system, sandbox, invoice, 100_00)
    address = f"{url}/webhooks/mercadopago/{business.id}"
    elsewhere = f"{url}/webhooks/mercadopago/{other.id}"
    for to, about in ((elsewhere, payment.id), (address, payment.id + 1), (address, payment.id)):
        told = await sandbox.mercadopago.notify(to, about, notification_id=77)
        assert told.status == 200
    await relay(system)
    await harnessed.drain("payment.webhook", schedules=False)
    assert await paid(business, invoice) == 100_00


@pytest.mark.parametrize("odd", ["a\0b", "x" * 300])
async def test_a_notification_with_an_odd_id_is_refused(
    business: Business, sandbox: Sandbox, url: str, odd: str
) -> None:
    address = f"{url}/webhooks/mercadopago/{business.id}"
    told = await sandbox.mercadopago.notify(address, 1)
    body = told.body.replace(str(told.notification_id).encode(), json.dumps(odd).encode())
    changed = await sandbox.mercadopago.webhooks.send(replace(told, body=body))
    about = await sandbox.mercadopago.notify(address, odd)
    assert (told.status, changed.status, about.status) == (200, 401, 401)


async def test_messages_of_customers_come_in_once(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox, url: str
) -> None:
    said = sandbox.whatsapp.text(business.phone.lstrip("+"), "se rompió la caldera")
    told = await sandbox.whatsapp.notify(f"{url}/webhooks/whatsapp", said)
    again = await sandbox.whatsapp.replay(told)
    assert (told.status, again.status) == (200, 200)
    assert await business.rows(OUTBOX) == [("whatsapp.inbound", str(business.id))]
    await relay(system)
    await harnessed.drain("whatsapp.inbound", schedules=False)
    late = await sandbox.whatsapp.replay(told)
    await relay(system)
    await harnessed.drain("whatsapp.inbound", schedules=False)
    assert late.status == 200
    assert await business.rows(SEEN) == [("inbound", "text", "se rompió la caldera")]
    assert await business.rows("SELECT 1 FROM faena.outbox WHERE refused IS NOT NULL") == []


async def test_a_message_is_not_lost_with_the_broker(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox, url: str
) -> None:
    said = sandbox.whatsapp.text(business.phone.lstrip("+"), "se rompió la caldera")
    await sandbox.whatsapp.notify(f"{url}/webhooks/whatsapp", said)
    await relay(system)
    assert await business.rows(OUTBOX) == [("whatsapp.inbound", str(business.id))], "until it ends"


async def test_a_message_with_characters_that_cannot_be_stored_takes_no_other_with_it(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox, url: str
) -> None:
    sender = business.phone.lstrip("+")
    said = [sandbox.whatsapp.text(sender, one) for one in ("a\0b", "se rompió la caldera")]
    told = await sandbox.whatsapp.notify(f"{url}/webhooks/whatsapp", *said)
    assert told.status == 200
    await relay(system)
    await harnessed.drain("whatsapp.inbound", schedules=False)
    contents = {content for _, _, content in await business.rows(SEEN)}
    assert contents == {"ab", "se rompió la caldera"}


@pytest.mark.parametrize(
    ("odd", "expected"),
    [
        ({"type": "image", "image": {"id": "9" * 300, "mime_type": "image/png"}}, {"document"}),
        ({"id": "wamid." + "x" * 300}, set()),
        ({"id": "wamid.\0"}, set()),
    ],
)
async def test_a_message_that_is_odd_holds_up_no_other(
    system: System,
    harnessed: Harness,
    business: Business,
    sandbox: Sandbox,
    url: str,
    odd: dict[str, Any],
    expected: set[str],
) -> None:
    sender = business.phone.lstrip("+")
    strange, said = [sandbox.whatsapp.text(sender, "hola") for _ in range(2)]
    strange = replace(strange, value={**strange.value, **odd})
    told = await sandbox.whatsapp.notify(f"{url}/webhooks/whatsapp", strange, said)
    assert told.status == 200
    await relay(system)
    await harnessed.drain("whatsapp.inbound", schedules=False)
    assert {kind for _, kind, _ in await business.rows(SEEN)} == {"text"} | expected


async def test_messages_to_a_number_of_nobody_are_left_alone(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox, url: str
) -> None:
    said = sandbox.whatsapp.text("5491155550000", "hola")
    told = await sandbox.whatsapp.notify(f"{url}/webhooks/whatsapp", said, number="999")
    assert told.status == 200
    await harnessed.drain("whatsapp.inbound", schedules=False)
    assert await business.rows(SEEN) == []


async def test_what_meta_did_not_sign_is_refused(
    business: Business, sandbox: Sandbox, url: str
) -> None:
    said = sandbox.whatsapp.text("5491155550000", "hola")
    sandbox.whatsapp.app_secret = "another"
    assert (await sandbox.whatsapp.notify(f"{url}/webhooks/whatsapp", said)).status == 401


@pytest.mark.parametrize(("token", "status"), [("right", 200), ("wrong", 403)])
async def test_the_challenge_is_answered_to_who_knows_the_token(
    sandbox: Sandbox, url: str, token: str, status: int
) -> None:
    query: dict[str, Any] = {
        "hub.mode": "subscribe",
        "hub.challenge": "1158201444",
        "hub.verify_token": sandbox.verify_token if token == "right" else "x",
    }
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.get(f"{url}/webhooks/whatsapp", params=query)
    assert answer.status_code == status
    assert (answer.text == "1158201444") == (status == 200)
