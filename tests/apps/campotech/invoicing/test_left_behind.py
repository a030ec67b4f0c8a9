"""What holds up an invoice holds up no other, is told to the owners, and is looked after."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from apps.campotech.invoicing.bill import NewInvoice
from apps.campotech.keys import key_of
from apps.campotech.system import System
from apps.sandbox.sandbox import Sandbox

from apps.campotech.invoicing import invoice as invoices
from apps.campotech.invoicing import pending
from apps.sandbox import Fault
from faena.testing import Harness
from tests.apps.campotech.business import PLATFORM, Business
from tests.apps.campotech.invoicing.test_issue import OLDER, REQUEST, ask, issued, row, run, series
from tests.apps.campotech.outbox import settle

# -- what a customer's data may do to a series ----------------------------------------------------


async def customer(business: Business, **given: Any) -> None:
    """Their data have changed."""
    for name, value in given.items():
        query = f"UPDATE campotech.customers SET {name} = %s WHERE id = %s RETURNING 1"
        await business.rows(query, value, business.customer)


@pytest.mark.parametrize("wrong", [{"tax_id": "20123456780"}, {"vat_condition": 99}])
async def test_an_invoice_that_can_be_no_voucher_fails_and_holds_up_no_other(
    system: System,
    harnessed: Harness,
    business: Business,
    sandbox: Sandbox,
    wrong: dict[str, Any],
) -> None:
    await customer(business, **wrong)
    bad = await business.invoice()
    await ask(system, business, bad)
    await run(harnessed)
    number, status, _, problem = await row(business, bad)
    assert (number, status) == (None, "failed")
    assert problem.startswith("no voucher can be like that")
    await customer(business, tax_id=None, vat_condition=5)
    good = await business.invoice()
    await ask(system, business, good)
    await run(harnessed)
    assert (await row(business, good))[:2] == (1, "issued")


async def test_a_customer_who_changes_after_it_was_sent_does_not_make_it_another_invoice(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    await customer(business, tax_id="20123456")
    invoice = await business.invoice()
    sandbox.afip.faults.add(Fault(kind="lost", operation=REQUEST, times=1))
    await ask(system, business, invoice)
    await harnessed.drain("afip.invoice", schedules=False)
    assert (await row(business, invoice))[:2] == (1, "sending")
    await customer(business, tax_id="30999999", vat_condition=4)
    await run(harnessed)
    assert (await row(business, invoice))[:2] == (1, "issued")
    assert issued(sandbox) == series(business, 1)
    async with system.pg.transaction() as connection:
        known = await invoices.find(connection, business.id, invoice)
    assert known is not None
    assert known.document().receiver_id == "20123456", "as the tax office has it"


# -- what owners are told -------------------------------------------------------------------------


async def told_owners(business: Business) -> list[dict[str, Any]]:
    query = "SELECT payload FROM faena.outbox WHERE task = 'push'"
    return [payload for (payload,) in await business.rows(query)]


async def hire_owner(system: System, business: Business) -> None:
    await system.pg.outbox.publish()
    await business.rows(
        "INSERT INTO campotech.users (id, organization_id, name, role) "
        "VALUES (%s, %s, 'Eva', 'owner') RETURNING 1",
        uuid4(),
        business.id,
    )


async def test_the_owners_are_told_of_an_invoice_that_afip_refuses(
    system: System, harnessed: Harness, business: Business
) -> None:
    await hire_owner(system, business)
    await customer(business, tax_id=business.cuit)
    invoice = await business.invoice()
    await ask(system, business, invoice)
    await run(harnessed)
    (told,) = await told_owners(business)
    assert told["title"] == "Error en facturación AFIP"
    assert told["body"].startswith(
        "La factura B de Ana Muñoz por $ 1.210,00 no pudo procesarse. Error: AFIP refused"
    )
    assert told["data"] == {"invoiceId": str(invoice)}


async def test_the_owners_are_told_once_of_what_keeps_all_their_invoices_waiting(
    system: System, harnessed: Harness, sandbox: Sandbox
) -> None:
    business = await Business.make(system, sandbox, is_delegated=False)
    await hire_owner(system, business)
    for _ in range(3):
        await ask(system, business, await business.invoice())
    await run(harnessed)
    (told,) = await told_owners(business)
    assert told["body"].startswith("Las facturas esperan. Error: ")


# -- invoices that were left behind ---------------------------------------------------------------


async def test_invoices_that_cannot_be_helped_keep_no_other_from_its_turn(
    system: System,
    harnessed: Harness,
    business: Business,
    sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pending, "MOST", 2)
    monkeypatch.setattr(pending, "PAGE", 2)
    hopeless = await Business.make(system, sandbox, number="2", is_delegated=False)
    stuck = [await hopeless.invoice() for _ in range(3)]
    await business.rows(OLDER, timedelta(days=2), stuck)
    forgotten = await business.invoice()
    await business.rows(OLDER, timedelta(days=1), [forgotten])
    assert [await system.pending.find() for _ in range(3)] == [2, 2, 0]
    await run(harnessed)
    assert (await row(business, forgotten))[:2] == (1, "issued")


async def test_an_invoice_whose_job_has_died_is_tried_again_and_one_whose_job_waits_is_not(
    system: System, harnessed: Harness, sandbox: Sandbox
) -> None:
    business = await Business.make(system, sandbox, is_delegated=False)
    ((at, invoice),) = await business.rows(
        "SELECT created_at, id FROM campotech.invoices WHERE id = %s", await business.invoice()
    )
    given = [invoice, business.id, business.customer, "B", 1, 121_000, at]
    message = pending.message_of(*given)
    receipt = await system.issuing.request_cae.enqueue(
        message, tenant=str(business.id), id=str(key_of(message))
    )
    await business.rows(OLDER, timedelta(hours=1), [invoice])
    assert await system.pending.find() == 0, "its job waits"
    await run(harnessed)
    assert (await receipt.handle.view()).state == "dead"
    sandbox.afip.delegate(business.cuit, PLATFORM)
    await business.rows("UPDATE campotech.invoices SET looked_at = NULL RETURNING 1")
    assert await system.pending.find() == 1
    await run(harnessed)
    assert (await row(business, invoice))[:2] == (1, "issued")


async def test_an_invoice_whose_job_is_in_the_outbox_comes_in_its_turn(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    await system.pg.outbox.publish()
    new = NewInvoice(
        organization=business.id,
        key="a-key-of-the-caller",
        customer=business.customer,
        kind="B",
        point_of_sale=1,
        net_cents=100_00,
    )
    async with system.pg.transaction() as connection:
        assert await system.billing.store(connection, new)
    await business.rows(OLDER, timedelta(hours=1), [new.id])
    assert await system.pending.find() == 0, "the relay has not sent it yet"
    await settle(system, harnessed)
    assert (await row(business, new.id))[:2] == (1, "issued")


async def test_a_run_ends_in_time_and_the_next_one_goes_on(
    system: System, harnessed: Harness, business: Business, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending, "PAGE", 2)
    monkeypatch.setattr(pending, "LONGEST_S", -1.0)
    invoices = [await business.invoice() for _ in range(4)]
    await business.rows(OLDER, timedelta(hours=1), invoices)
    assert [await system.pending.find() for _ in range(3)] == [2, 2, 0]


async def test_an_invoice_that_finds_a_full_queue_is_tried_again_by_the_next_run(
    system: System, harnessed: Harness, business: Business
) -> None:
    forgotten = await business.invoice()
    await business.rows(OLDER, timedelta(hours=1), [forgotten])
    other = business.message(uuid4())
    await system.issuing.request_cae.enqueue_many(
        [other] * 500, tenant=str(business.id), delay="1d"
    )
    assert await system.pending.find() == 0
    await system.queues["afip.invoice"].obliterate(force=True)
    await business.rows("UPDATE campotech.invoices SET looked_at = NULL RETURNING 1")
    assert await system.pending.find() == 1


async def test_an_invoice_without_its_pdf_is_found_and_gets_it(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    invoice = await business.invoice()
    await business.rows(
        "UPDATE campotech.invoices SET status = 'issued', number = 1, voucher_date = now(), "
        "cae = '74000000000001', cae_expires = now() WHERE id = %s RETURNING 1",
        invoice,
    )
    assert await system.pending.find() == 0, "its own job is about to ask for it"
    await business.rows(OLDER, timedelta(hours=1), [invoice])
    assert await system.pending.find() == 1
    await run(harnessed)
    query = "SELECT pdf_key IS NOT NULL FROM campotech.invoices"
    assert await business.rows(query) == [(True,)]
    assert sandbox.afip.ledger.of(REQUEST) == [], "it has its CAE"
