"""Our records are compared with those of providers: repaired where that is safe, else listed."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from apps.campotech.keys import key_of
from apps.campotech.upkeep.comparison import ALL
from apps.providers.afip import Voucher

from apps.campotech.invoicing import invoice as invoices
from apps.campotech.messages import Reconciliation
from apps.campotech.upkeep import comparison, invoice_comparison, payment_comparison
from apps.sandbox import Fault
from tests.apps.campotech.business import Business
from tests.apps.campotech.messaging.office import Office
from tests.apps.campotech.payments.test_take import paid, pay

_numbers = itertools.count(1)
TODAY = datetime.now(comparison.ZONE).date()
FOUND = "SELECT looked_at, repaired, differing, differences, finished_at IS NOT NULL FROM campotech.reconciliations"  # noqa: E501
REQUEST = "FECAESolicitar"
NOW = datetime.now(UTC)


def wanted(kind: str, org: UUID = ALL, **given: Any) -> Reconciliation:
    made: dict[str, Any] = {
        "org_id": org,
        "idempotency_key": f"reconciliation-{next(_numbers):06}",
        "created_at": NOW,
        "reconciliation_type": kind,
        "date_from": TODAY - timedelta(days=1),
        "date_to": TODAY,
    }
    return Reconciliation(**{**made, **given})


async def reconcile(office: Office, message: Reconciliation) -> tuple[int, int, int]:
    """Run it with all that follows; what it looked at, repaired, and could not."""
    receipt = await office.system.reconciling.reconcile.enqueue(
        message, id=str(key_of(message)), on_conflict="keep"
    )
    await office.settle(through="3h")
    await office.settle()
    return tuple(await receipt.handle.result(timeout="10s"))


async def problems(office: Office) -> list[tuple[str, str]]:
    ((differences,),) = await office.rows("SELECT differences FROM campotech.reconciliations")
    return [(one["subject"], one["problem"]) for one in differences]


# -- payments -------------------------------------------------------------------------------------


async def test_a_payment_whose_notification_was_lost_is_taken_in(office: Office) -> None:
    invoice = await office.business.invoice()
    await pay(office.system, office.world, invoice, 12_100_00)
    assert await reconcile(office, wanted("payments")) == (1, 1, 0)
    assert await paid(office.business, invoice) == 12_100_00
    assert await reconcile(office, wanted("payments")) == (1, 0, 0)


async def test_a_day_of_many_pages_and_several_days_are_gone_through(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payment_comparison, "PAGE", 2)
    invoice = await office.business.invoice()
    made = [await pay(office.system, office.world, invoice, 100_00) for _ in range(5)]
    made[0].created_at -= timedelta(days=1)
    long_ago = await pay(office.system, office.world, invoice, 100_00)
    long_ago.created_at -= timedelta(days=9)
    assert await reconcile(office, wanted("payments")) == (5, 5, 0)
    assert await paid(office.business, invoice) == 500_00


async def test_a_payment_that_has_changed_since_is_read_back(office: Office) -> None:
    invoice = await office.business.invoice()
    payment = await pay(office.system, office.world, invoice, 100_00)
    payment.status = "in_process"
    assert await reconcile(office, wanted("payments")) == (2, 1, 0), "by its day, and by its id"
    assert await paid(office.business, invoice) == 0
    payment.created_at -= timedelta(days=40)
    office.world.mercadopago.settle(payment.id, "approved", None)
    assert await reconcile(office, wanted("payments")) == (1, 1, 0)
    assert await paid(office.business, invoice) == 100_00


async def test_a_full_comparison_also_reads_what_looks_settled(office: Office) -> None:
    invoice = await office.business.invoice()
    payment = await pay(office.system, office.world, invoice, 100_00)
    await reconcile(office, wanted("payments"))
    office.world.mercadopago.account.payments.pop(payment.id)
    assert await reconcile(office, wanted("payments")) == (0, 0, 0)
    assert await reconcile(office, wanted("payments", full_reconciliation=True)) == (1, 0, 1)


async def test_one_organisation_is_compared_alone(office: Office, other: Business) -> None:
    for one in (office.business, other):
        await pay(office.system, office.world, await one.invoice(), 100_00)
    await pay(office.system, office.world, "no invoice", 100_00)
    assert await reconcile(office, wanted("payments", other.id)) == (1, 1, 0)
    ((whose,),) = await office.rows("SELECT organization_id FROM campotech.payments")
    assert whose == other.id
    assert await reconcile(office, wanted("payments")) == (3, 1, 1)


async def test_a_message_has_one_row_however_often_it_is_sent(office: Office) -> None:
    await pay(office.system, office.world, await office.business.invoice(), 100_00)
    message = wanted("payments")
    await reconcile(office, message)
    first = await office.rows(FOUND)
    for _ in range(2):
        await office.system.reconciling.reconcile.enqueue(message)
        await office.settle(through="5m")
    assert await office.rows(FOUND) == first
    assert first[0][:3] == (1, 1, 0)


async def test_while_mercadopago_fails_the_run_waits_and_then_goes_on(office: Office) -> None:
    invoice = await office.business.invoice()
    await pay(office.system, office.world, invoice, 100_00)
    office.world.mercadopago.faults.add(Fault(kind="status", status=429, seconds=30, times=2))
    assert await reconcile(office, wanted("payments")) == (1, 1, 0)


# -- invoices -------------------------------------------------------------------------------------


async def issue(office: Office, number: int) -> list[UUID]:
    """Invoices that have their CAEs."""
    made = [await office.business.invoice() for _ in range(number)]
    for one in made:
        task = office.system.issuing.request_cae
        await task.enqueue(office.business.message(one), tenant=office.tenant)
    await office.harness.drain("afip.invoice", schedules=False, through="5m")
    return made


async def lost(office: Office) -> UUID:
    """An invoice whose CAE was given, whose answer was lost, and whose job was cancelled."""
    invoice = await office.business.invoice()
    office.world.afip.faults.add(Fault(kind="lost", operation=REQUEST, times=1))
    receipt = await office.system.issuing.request_cae.enqueue(
        office.business.message(invoice), tenant=office.tenant
    )
    await office.harness.drain("afip.invoice", schedules=False)
    await receipt.handle.cancel()
    return invoice


async def foreign(office: Office, **changed: Any) -> Voucher:
    """Another program of the same business has issued a voucher in our series."""
    own = await office.business.invoice()
    async with office.system.pg.transaction() as connection:
        one = await invoices.find(connection, office.id, own)
    assert one is not None
    await office.run("DELETE FROM campotech.invoices WHERE id = %s", own)
    last = await office.system.afip.last_authorized(one.cuit, *one.series)
    made = replace(one, number=last + 1, voucher_date=TODAY, **changed).voucher()
    await office.system.afip.request_cae(one.cuit, made)
    return made


async def test_an_invoice_that_afip_has_gets_its_cae_its_pdf_and_its_message(
    office: Office,
) -> None:
    invoice = await lost(office)
    assert await reconcile(office, wanted("invoices")) == (1, 1, 0)
    query = "SELECT status, number, cae, pdf_key IS NOT NULL FROM campotech.invoices WHERE id = %s"
    ((status, number, cae, has_pdf),) = await office.rows(query, invoice)
    record = await office.system.afip.consult(office.business.cuit, 1, 6, 1)
    assert (status, number, has_pdf) == ("issued", 1, True)
    assert record is not None
    assert cae == record.code
    assert len(office.world.afip.ledger.of(REQUEST)) == 1
    assert office.told() == ["invoice_ready"]
    assert office.pushed() == []


async def test_a_voucher_that_we_do_not_know_is_for_people(office: Office) -> None:
    await issue(office, 1)
    await foreign(office)
    await issue(office, 1)
    assert await reconcile(office, wanted("invoices")) == (1, 0, 1)
    assert await problems(office) == [
        ("B 00001-00000002", "AFIP has a voucher that we do not know")
    ]
    query = "SELECT subject FROM campotech.audit_logs WHERE action = 'reconciliation'"
    assert await office.rows(query) == [("B 00001-00000002",)]
    assert office.pushed() == ["Conciliación con diferencias"]


async def test_one_after_our_last_is_found_and_one_of_another_day_is_not_ours_to_tell(
    office: Office,
) -> None:
    await issue(office, 1)
    await foreign(office)
    yesterday = wanted("invoices", date_to=TODAY - timedelta(days=1))
    assert await reconcile(office, yesterday) == (0, 0, 0)
    await office.run("DELETE FROM campotech.reconciliations")
    assert await reconcile(office, wanted("invoices")) == (1, 0, 1)


@pytest.mark.parametrize(
    ("change", "differing"),
    [
        ("net_cents = net_cents + 1", "total, net"),
        ("net_cents = net_cents - 1, vat_cents = vat_cents + 1", "net, vat"),
        ("cae = '74000000000001'", "cae"),
    ],
)
async def test_what_differs_is_found_by_a_full_comparison(
    office: Office, change: str, differing: str
) -> None:
    first, _ = await issue(office, 2)
    await office.run(f"UPDATE campotech.invoices SET {change} WHERE id = %s", first)
    assert await reconcile(office, wanted("invoices")) == (0, 0, 0)
    await office.run("DELETE FROM campotech.reconciliations")
    assert await reconcile(office, wanted("invoices", full_reconciliation=True)) == (2, 0, 1)
    assert await problems(office) == [
        ("B 00001-00000001", f"our invoice is not what AFIP has (it differs in {differing})")
    ]


@pytest.mark.parametrize("number", [2, 7])
async def test_an_invoice_that_afip_has_lost_is_listed(office: Office, number: int) -> None:
    (invoice,) = await issue(office, 1)
    await office.run("UPDATE campotech.invoices SET number = %s WHERE id = %s", number, invoice)
    assert await reconcile(office, wanted("invoices")) == (1, 0, 1)
    ((subject, problem),) = await problems(office)
    assert (subject, "does not have" in problem) == (f"B 00001-0000000{number}", True)


async def test_a_voucher_under_the_number_of_another_is_listed_and_not_taken(
    office: Office,
) -> None:
    await foreign(office, net_cents=5_00, vat_cents=1_05)
    invoice = await office.business.invoice()
    sending = "SET number = 1, voucher_date = %s, status = 'sending' WHERE id = %s"
    await office.run(f"UPDATE campotech.invoices {sending}", TODAY, invoice)
    assert await reconcile(office, wanted("invoices")) == (1, 0, 1)
    ((_, problem),) = await problems(office)
    assert "another voucher under the number of our invoice" in problem
    query = "SELECT status, cae FROM campotech.invoices WHERE id = %s"
    assert await office.rows(query, invoice) == [("sending", None)]


async def test_a_long_series_is_asked_for_in_slices_with_pauses(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invoice_comparison, "SLICE", 2)
    await issue(office, 5)
    message = wanted("invoices", full_reconciliation=True)
    receipt = await office.system.reconciling.reconcile.enqueue(message)
    await office.settle()
    assert (await office.rows(FOUND))[0][:2] == (2, 0)
    assert (await receipt.handle.view()).snoozes == 1
    await office.settle(through="1h")
    assert (await office.rows(FOUND))[0][:2] == (5, 0)
    view = await receipt.handle.view()
    assert (view.state, view.attempts_made) == ("completed", 1)


async def test_an_organisation_that_afip_refuses_stops_no_other(office: Office) -> None:
    other = await Business.make(office.system, office.world, number="7", is_delegated=False)
    await issue(office, 1)
    await lost(office)
    number = "SET number = 1, voucher_date = %s, status = 'sending' WHERE id = %s"
    await office.run(f"UPDATE campotech.invoices {number}", TODAY, await other.invoice())
    assert await reconcile(office, wanted("invoices")) == (1, 1, 1)
    ((subject, problem),) = await problems(office)
    assert subject == "B 00001"
    assert problem.startswith("AFIP could not be asked")


async def test_while_afip_is_out_a_comparison_uses_no_attempt(office: Office) -> None:
    await lost(office)
    await office.harness.open_breaker(office.system.upstreams.afip)
    receipt = await office.system.reconciling.reconcile.enqueue(wanted("invoices"))
    await office.settle()
    assert (await office.rows(FOUND))[0][4] is False
    await office.settle(through="1h")
    view = await receipt.handle.view()
    assert (view.state, view.attempts_made) == ("completed", 1)
    assert (await office.rows(FOUND))[0][1] == 1


# -- messages -------------------------------------------------------------------------------------


async def since_last_month(office: Office) -> None:
    """Have partitions for messages of the past, whatever day it is."""
    table = office.system.pg.partitioned_table("campotech.whatsapp_messages")
    await table.ensure(since=TODAY - timedelta(days=30))


async def outbound(office: Office, status: str, age: timedelta) -> UUID:
    message = uuid4()
    talk = "SELECT id FROM campotech.conversations LIMIT 1"
    if not (found := await office.rows(talk)):
        await office.run(
            "INSERT INTO campotech.conversations (id, organization_id, phone) VALUES (%s, %s, %s)",
            uuid4(),
            office.id,
            office.business.phone,
        )
        found = await office.rows(talk)
    await office.run(
        "INSERT INTO campotech.whatsapp_messages (id, organization_id, conversation_id, direction, "
        "kind, status, created_at) VALUES (%s, %s, %s, 'outbound', 'text', %s, %s)",
        message,
        office.id,
        found[0][0],
        status,
        NOW - age,
    )
    return message


def days(before: int) -> dict[str, date]:
    return {"date_from": TODAY - timedelta(days=before)}


async def test_a_message_that_whatsapp_is_silent_about_is_marked_after_a_day(
    office: Office,
) -> None:
    await since_last_month(office)
    old = [await outbound(office, one, timedelta(hours=25)) for one in ("sending", "unknown")]
    young = await outbound(office, "sending", timedelta(hours=20))
    done = await outbound(office, "delivered", timedelta(hours=25))
    assert await reconcile(office, wanted("messages", **days(3))) == (2, 0, 2)
    statuses = [await office.status_of(one) for one in (*old, young, done)]
    assert statuses == ["unconfirmed", "unconfirmed", "sending", "delivered"]
    assert await reconcile(office, wanted("messages", **days(3))) == (0, 0, 0)


async def test_a_full_comparison_lists_what_was_never_delivered(office: Office) -> None:
    await since_last_month(office)
    sent = await outbound(office, "sent", timedelta(hours=25))
    message = wanted("messages", full_reconciliation=True, **days(3))
    assert await reconcile(office, message) == (1, 0, 1)
    assert await office.status_of(sent) == "sent"


async def left_behind(office: Office, *, has_job: bool = False) -> UUID:
    """A message of a customer that was taken in, and whose answer is still to come."""
    await since_last_month(office)
    receipt = await office.take(office.written())
    await office.harness.drain("whatsapp.inbound", schedules=False)
    message = UUID(await receipt.handle.result(timeout="10s"))
    if not has_job:
        await office.run("DELETE FROM faena.outbox WHERE queue = 'whatsapp.inbound'")
    await office.run("UPDATE campotech.whatsapp_messages SET created_at = %s", NOW - 2 * HOUR)
    return message


HOUR = timedelta(hours=1)


async def test_a_customer_whom_nobody_has_answered_is_answered(office: Office) -> None:
    message = await left_behind(office)
    assert await reconcile(office, wanted("messages")) == (1, 1, 0)
    assert await office.status_of(message) == "answered"
    assert len(office.told()) == 1


async def test_a_message_whose_job_waits_is_left_to_it(office: Office) -> None:
    message = await left_behind(office, has_job=True)
    await office.relay()
    await office.system.queues["whatsapp.inbound"].pause()
    assert await reconcile(office, wanted("messages")) == (1, 0, 0)
    assert await office.status_of(message) == "received"
    await office.system.queues["whatsapp.inbound"].resume()


async def test_a_message_whose_job_was_cancelled_is_handed_to_a_person(office: Office) -> None:
    message = await left_behind(office, has_job=True)
    await office.relay()
    task = office.system.answering.respond
    await task.handle(f"respond-{message.hex}", tenant=office.tenant).cancel()
    assert await reconcile(office, wanted("messages")) == (1, 1, 0)
    assert await office.status_of(message) == "for_person"
    assert await office.needs_person() == [True]
    assert office.pushed() == ["WhatsApp necesita atención"]
