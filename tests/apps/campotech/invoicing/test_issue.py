"""Each invoice gets one CAE, and the numbers of a series have no gaps, whatever fails."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from apps.campotech.system import System
from apps.sandbox.sandbox import Sandbox

from apps.campotech.messages import InvoicePdf
from apps.sandbox import Fault
from faena.testing import Harness
from tests.apps.campotech.business import Business

REQUEST = "FECAESolicitar"
OLDER = "UPDATE campotech.invoices SET created_at = now() - %s WHERE id = ANY(%s) RETURNING 1"
INVOICES = "SELECT number, status, cae, problem FROM campotech.invoices WHERE id = %s"


async def ask(system: System, business: Business, invoice: UUID, **given: Any) -> Any:
    return await system.issuing.request_cae.enqueue(
        business.message(invoice, **given), tenant=str(business.id)
    )


async def row(business: Business, invoice: UUID) -> tuple[Any, ...]:
    (found,) = await business.rows(INVOICES, invoice)
    return found


def issued(sandbox: Sandbox) -> list[str]:
    """What has a CAE at the tax office, by its ledger."""
    return [one.subject for one in sandbox.afip.ledger.of(REQUEST, "ok")]


def series(business: Business, *numbers: int) -> list[str]:
    return [f"{business.cuit}/1/6/{number}" for number in numbers]


async def run(harnessed: Harness, through: str = "2h") -> dict[str, int]:
    queues = ("afip.invoice", "invoice.pdf")
    return (await harnessed.drain(*queues, through=through, schedules=False)).counts


async def test_an_invoice_gets_its_number_its_cae_and_its_pdf(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    invoice = await business.invoice()
    receipt = await ask(system, business, invoice)
    await run(harnessed)
    number, cae, _ = await receipt.handle.result(timeout="10s")
    assert (await row(business, invoice))[:3] == (number, "issued", cae)
    assert number == 1
    assert issued(sandbox) == series(business, 1)
    ((key,),) = await business.rows("SELECT pdf_key FROM campotech.invoices WHERE id = %s", invoice)
    assert (await system.storage.get(key)).startswith(b"%PDF")


async def test_numbers_follow_each_other_in_the_order_of_the_jobs(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    invoices = [await business.invoice() for _ in range(4)]
    for one in invoices:
        await ask(system, business, one)
    await run(harnessed)
    assert [(await row(business, one))[0] for one in invoices] == [1, 2, 3, 4]
    assert issued(sandbox) == series(business, 1, 2, 3, 4)


@pytest.mark.parametrize("kind", ["lost", "cut"])
async def test_after_a_lost_answer_there_is_still_one_cae(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox, kind: Any
) -> None:
    first, second = await business.invoice(), await business.invoice()
    sandbox.afip.faults.add(Fault(kind=kind, operation=REQUEST, times=1))
    for one in (first, second):
        await ask(system, business, one)
    await run(harnessed)
    assert [(await row(business, one))[:2] for one in (first, second)] == [
        (1, "issued"),
        (2, "issued"),
    ]
    assert issued(sandbox) == series(business, 1, 2)


async def test_a_job_that_runs_again_asks_for_nothing(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    invoice = await business.invoice()
    for _ in range(2):
        await ask(system, business, invoice)
    await run(harnessed)
    assert issued(sandbox) == series(business, 1)
    ((files,),) = await business.rows("SELECT count(*) FROM campotech.files")
    assert files == 1
    assert len(await harnessed.jobs("invoice.pdf")) == 1


async def test_a_pdf_that_customers_have_is_made_again_only_when_asked_for(
    system: System, harnessed: Harness, business: Business
) -> None:
    invoice = await business.invoice()
    await ask(system, business, invoice)
    await run(harnessed)
    ((key,),) = await business.rows("SELECT pdf_key FROM campotech.invoices")
    await system.storage.put(key, b"what the customer has")
    common = {"org_id": business.id, "idempotency_key": "pdf-of-the-invoice"}
    for regenerate, begins in ((False, b"what"), (True, b"%PDF")):
        wanted = InvoicePdf(
            **common,  # pyright: ignore[reportArgumentType]
            created_at=datetime.now(UTC),
            invoice_id=invoice,
            regenerate=regenerate,
        )
        await system.documents.render.enqueue(wanted, tenant=str(business.id))
        await run(harnessed)
        assert (await system.storage.get(key)).startswith(begins)


async def test_a_refused_invoice_gives_its_number_to_the_next(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    bad, good = await business.invoice(), await business.invoice()
    await business.rows(
        "UPDATE campotech.customers SET tax_id = %s WHERE id = %s RETURNING id",
        business.cuit,
        business.customer,
    )
    refused = await ask(system, business, bad)
    await run(harnessed)
    assert (await refused.handle.view()).state == "dead"
    number, status, cae, problem = await row(business, bad)
    assert (number, status, cae) == (None, "failed", None)
    assert "AFIP refused the voucher" in problem
    await business.rows("UPDATE campotech.customers SET tax_id = NULL RETURNING id")
    await ask(system, business, good)
    await run(harnessed)
    assert issued(sandbox) == series(business, 1)
    assert (await row(business, good))[0] == 1


async def test_an_invoice_that_was_left_behind_is_found_and_asked_for_first(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    lost, next_one = await business.invoice(), await business.invoice()
    sandbox.afip.faults.add(Fault(kind="lost", operation=REQUEST, times=1))
    receipt = await ask(system, business, lost)
    await harnessed.drain("afip.invoice", schedules=False)
    await receipt.handle.cancel()
    await ask(system, business, next_one)
    await run(harnessed)
    assert (await row(business, lost))[:2] == (1, "sending"), "nobody works on it any more"
    older = "SET created_at = now() - interval '1h' WHERE id = %s RETURNING 1"
    await business.rows(f"UPDATE campotech.invoices {older}", lost)
    assert await system.pending.find() == 1
    assert await system.pending.find() == 0, "it is on its way"
    await run(harnessed)
    assert (await row(business, lost))[:2] == (1, "issued")
    assert (await row(business, next_one))[:2] == (2, "issued")
    assert issued(sandbox) == series(business, 1, 2)


async def test_a_number_that_a_dead_job_never_sent_is_used_by_the_next(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    never, next_one = await business.invoice(), await business.invoice()
    sandbox.afip.faults.add(Fault(kind="cut", operation=REQUEST, times=1))
    receipt = await ask(system, business, never)
    await harnessed.drain("afip.invoice", schedules=False)
    assert (await row(business, never))[:2] == (1, "sending")
    await receipt.handle.cancel()
    await ask(system, business, next_one)
    await run(harnessed)
    assert (await row(business, never))[:2] == (None, "pending")
    assert (await row(business, next_one))[:2] == (1, "issued")
    assert issued(sandbox) == series(business, 1)


async def test_while_afip_is_out_no_attempt_is_used_and_all_is_issued_afterwards(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    invoices = [await business.invoice() for _ in range(3)]
    receipts = [await ask(system, business, one) for one in invoices]
    await harnessed.open_breaker(system.upstreams.afip)
    assert set(await run(harnessed, "30s")) <= {"limited"}
    assert issued(sandbox) == []
    await run(harnessed)
    views = [await one.handle.view() for one in receipts]
    assert [one.attempts_made for one in views] == [1, 1, 1]
    assert issued(sandbox) == series(business, 1, 2, 3)


async def test_after_hours_without_afip_all_is_issued_and_no_operator_is_needed(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    invoices = [await business.invoice() for _ in range(3)]
    for one in invoices:
        await ask(system, business, one)
    sandbox.afip.faults.add(Fault(kind="status", status=503))
    for _ in range(3):
        await run(harnessed, "1h")
        await business.rows("UPDATE campotech.invoices SET looked_at = NULL RETURNING 1")
        await system.pending.find()
    view = await system.upstreams.afip.view()
    assert view.openings >= 5
    sandbox.afip.faults.clear()
    await run(harnessed)
    await business.rows(OLDER, timedelta(hours=1), invoices)
    await system.pending.find()
    await run(harnessed)
    assert {(await row(business, one))[1] for one in invoices} == {"issued"}
    assert len(issued(sandbox)) == 3


async def test_in_a_panic_nothing_is_sent_and_no_attempt_is_used(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    invoice = await business.invoice()
    await system.upstreams.afip.panic(reason="charged twice", by="ana")
    receipt = await ask(system, business, invoice)
    assert set(await run(harnessed)) <= {"limited"}
    assert (await row(business, invoice))[:2] == (None, "pending")
    await system.upstreams.afip.end_panic(by="ana")
    await run(harnessed)
    assert (await receipt.handle.view()).attempts_made == 1
    assert issued(sandbox) == series(business, 1)


async def test_a_business_that_has_not_delegated_keeps_its_invoice_pending(
    system: System, harnessed: Harness, sandbox: Sandbox
) -> None:
    business = await Business.make(system, sandbox, is_delegated=False)
    invoice = await business.invoice()
    receipt = await ask(system, business, invoice)
    await run(harnessed)
    assert (await receipt.handle.view()).state == "dead"
    number, status, _, problem = await row(business, invoice)
    assert (number, status) == (None, "pending")
    assert problem


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"org_id": uuid4()}, "no invoice"),
        ({"total": "1.00"}, "is not what the message says"),
        ({"punto_venta": 2}, "is not what the message says"),
        ({"invoice_type": "A"}, "is not what the message says"),
    ],
)
async def test_a_message_that_does_not_fit_its_invoice_dies_with_the_reason(
    system: System,
    harnessed: Harness,
    business: Business,
    sandbox: Sandbox,
    given: dict[str, Any],
    problem: str,
) -> None:
    receipt = await ask(system, business, await business.invoice(), **given)
    await run(harnessed)
    view = await receipt.handle.view()
    assert view.state == "dead"
    assert problem in view.errors[-1].message
    assert issued(sandbox) == []


async def test_organisations_do_not_share_numbers(
    system: System, harnessed: Harness, sandbox: Sandbox
) -> None:
    made = [await Business.make(system, sandbox, number=str(n)) for n in (1, 2)]
    for one in made:
        await ask(system, one, await one.invoice())
    await run(harnessed)
    assert sorted(issued(sandbox)) == sorted(series(made[0], 1) + series(made[1], 1))


def test_a_drain_of_two_hours_is_longer_than_all_pauses_of_afip(system: System) -> None:
    retry = system.queues["afip.invoice"].options.retry
    waits = [retry.curve.delay_us(n, None) for n in range(1, 5)]
    assert timedelta(microseconds=sum(waits)) < timedelta(hours=1)
