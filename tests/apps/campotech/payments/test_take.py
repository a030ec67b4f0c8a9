"""What MercadoPago tells is read back, stored once, and adds up on the invoice."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from apps.campotech.keys import notification_key
from apps.campotech.payments.take import Taken, store
from apps.campotech.system import System
from apps.providers.mercadopago import Client, Item, Preference
from apps.sandbox.sandbox import Sandbox

from apps.campotech.messages import PaymentWebhook
from apps.sandbox import Fault
from faena.testing import Harness
from tests.apps.campotech.business import Business

_numbers = itertools.count(1)
STORED = "SELECT status, amount_cents, refunded_cents, invoice_id FROM campotech.payments"


def told(business: Business, payment: object, event: str = "payment") -> PaymentWebhook:
    now = datetime.now(UTC)
    return PaymentWebhook(
        org_id=business.id,
        idempotency_key=f"notification-{next(_numbers):08}",
        created_at=now,
        webhook_id=f"n-{next(_numbers)}",
        event_type=event,  # pyright: ignore[reportArgumentType]
        mp_payment_id=str(payment),
        raw_payload={},
        received_at=now,
        signature="checked",
    )


async def take(system: System, harnessed: Harness, message: PaymentWebhook) -> list[Taken]:
    receipt = await system.payments.take.enqueue(
        message, tenant=str(message.org_id), id=str(notification_key(message))
    )
    await harnessed.drain("payment.webhook", schedules=False, through="1h")
    return await receipt.handle.result(timeout="10s")


async def pay(system: System, sandbox: Sandbox, reference: object, centavos: int) -> Any:
    """A customer pays for an invoice."""
    client = Client(system.settings.mercadopago, system.http)
    item = Item(title="Visita", unit_price_centavos=centavos)
    wanted = Preference(items=[item], external_reference=str(reference))
    return sandbox.mercadopago.pay((await client.create_preference(wanted)).id)


async def paid(business: Business, invoice: UUID) -> int:
    query = "SELECT paid_cents FROM campotech.invoices WHERE id = %s"
    ((cents,),) = await business.rows(query, invoice)
    return int(cents)


async def test_a_payment_is_stored_with_its_invoice(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    invoice = await business.invoice()
    payment = await pay(system, sandbox, invoice, 12_100_00)
    (taken,) = await take(system, harnessed, told(business, payment.id))
    assert taken == (str(payment.id), "approved", str(invoice), True)
    assert await business.rows(STORED) == [("approved", 12_100_00, 0, invoice)]
    assert await paid(business, invoice) == 12_100_00


async def test_the_same_news_twice_change_nothing(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    invoice = await business.invoice()
    payment = await pay(system, sandbox, invoice, 100_00)
    for _ in range(3):
        (taken,) = await take(system, harnessed, told(business, payment.id))
    assert not taken.is_news
    assert await paid(business, invoice) == 100_00
    ((logs,),) = await business.rows("SELECT count(*) FROM campotech.audit_logs")
    assert logs == 1


async def test_refunds_and_chargebacks_are_taken_off(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    invoice = await business.invoice()
    first = await pay(system, sandbox, invoice, 100_00)
    second = await pay(system, sandbox, invoice, 50_00)
    for one in (first, second):
        await take(system, harnessed, told(business, one.id))
    assert await paid(business, invoice) == 150_00
    client = Client(system.settings.mercadopago, system.http)
    await client.refund(str(first.id), key="refund-of-first", amount_centavos=30_00)
    await take(system, harnessed, told(business, first.id, "refund"))
    assert await paid(business, invoice) == 120_00
    chargeback = sandbox.mercadopago.charge_back(second.id)
    await take(system, harnessed, told(business, chargeback.id, "chargeback"))
    assert await paid(business, invoice) == 70_00


async def test_older_news_that_come_later_change_nothing(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    invoice = await business.invoice()
    payment = await pay(system, sandbox, invoice, 100_00)
    now = await Client(system.settings.mercadopago, system.http).get_payment(str(payment.id))
    assert now.updated_at is not None
    before = replace(now, status="pending", updated_at=now.updated_at - timedelta(seconds=1))
    refunded = replace(now, refunded_centavos=30_00)  # in the same instant
    for news, changes in ((now, True), (before, False), (refunded, True), (before, False)):
        async with system.pg.transaction() as connection:
            taken = await store(connection, business.id, news, by="payment")
        assert taken.is_news == changes
    assert await business.rows(STORED) == [("approved", 100_00, 30_00, invoice)]
    assert await paid(business, invoice) == 70_00


async def test_money_that_is_disputed_counts_until_it_is_taken_back(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    invoice = await business.invoice()
    payment = await pay(system, sandbox, invoice, 100_00)
    counted: list[int] = []
    for change in (None, "in_mediation", "charged_back"):
        if change is not None:
            sandbox.mercadopago.settle(payment.id, change)
        await take(system, harnessed, told(business, payment.id))
        counted.append(await paid(business, invoice))
    assert counted == [100_00, 100_00, 0]


async def test_a_payment_of_another_organisation_touches_no_invoice(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    other = await Business.make(system, sandbox, number="2")
    theirs = await other.invoice()
    payment = await pay(system, sandbox, theirs, 100_00)
    receipt = await system.payments.take.enqueue(
        told(business, payment.id), tenant=str(business.id)
    )
    await harnessed.drain("payment.webhook", schedules=False)
    assert (await receipt.handle.view()).state == "dead"
    assert await business.rows(STORED) == []
    await take(system, harnessed, told(other, payment.id))
    assert await paid(other, theirs) == 100_00


async def test_a_payment_that_names_no_invoice_is_kept(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    for reference in ("not an id", uuid4()):
        payment = await pay(system, sandbox, reference, 10_00)
        (taken,) = await take(system, harnessed, told(business, payment.id))
        assert taken.invoice is None
    assert len(await business.rows(STORED)) == 2


async def test_an_unknown_payment_dies_at_once(
    system: System, harnessed: Harness, business: Business
) -> None:
    receipt = await system.payments.take.enqueue(told(business, 999_999), tenant=str(business.id))
    await harnessed.drain("payment.webhook", schedules=False)
    view = await receipt.handle.view()
    assert (view.state, view.attempts_made) == ("dead", 1)


async def test_a_lost_answer_is_read_again(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    invoice = await business.invoice()
    payment = await pay(system, sandbox, invoice, 10_00)
    sandbox.mercadopago.faults.add(Fault(kind="lost", times=1))
    (taken,) = await take(system, harnessed, told(business, payment.id))
    assert taken.is_news
    assert await paid(business, invoice) == 10_00
