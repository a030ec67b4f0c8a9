"""A job of the field becomes one invoice, of the right class, with the job that issues it."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from apps.campotech.invoicing.bill import NewInvoice, NotBillable, kind_of, net_of
from apps.campotech.system import System

from faena.testing import Harness
from tests.apps.campotech.business import Business

JOB = (
    "INSERT INTO campotech.jobs "
    "(id, organization_id, customer_id, status, description, total_cents) "
    "VALUES (%s, %s, %s, %s, 'caldera', %s) RETURNING id"
)
INVOICE = "SELECT kind, net_cents, vat_cents, job_id, status FROM campotech.invoices WHERE id = %s"
OUTBOX = "SELECT queue, task FROM faena.outbox"


async def job(
    business: Business, *, status: str = "completed", total: int | None = 121_000
) -> UUID:
    ((made,),) = await business.rows(JOB, uuid4(), business.id, business.customer, status, total)
    return made


async def bill(system: System, business: Business, one: UUID) -> UUID:
    async with system.pg.transaction() as connection:
        return await system.billing.bill_job(connection, business.id, one)


async def test_a_completed_job_becomes_one_invoice_with_its_job(
    system: System, harnessed: Harness, business: Business
) -> None:
    await system.pg.outbox.publish()
    one = await job(business)
    first, again = [await bill(system, business, one) for _ in range(2)]
    assert first == again
    assert await business.rows(INVOICE, first) == [("B", 100_000, 21_000, one, "pending")]
    assert await business.rows(OUTBOX) == [("afip.invoice", "request_cae")]


async def test_what_has_been_billed_stays_as_it_is(
    system: System, harnessed: Harness, business: Business
) -> None:
    await system.pg.outbox.publish()
    one = await job(business)
    first = await bill(system, business, one)
    await business.rows(
        "UPDATE campotech.jobs SET status = 'pending', total_cents = 5 WHERE id = %s RETURNING 1",
        one,
    )
    assert await bill(system, business, one) == first
    assert len(await business.rows(OUTBOX)) == 1


async def test_a_job_whose_invoice_was_refused_can_be_billed_again(
    system: System, harnessed: Harness, business: Business
) -> None:
    await system.pg.outbox.publish()
    one = await job(business)
    refused = [await bill(system, business, one)]
    for _ in range(2):
        failed = "UPDATE campotech.invoices SET status = 'failed' WHERE id = %s RETURNING 1"
        await business.rows(failed, refused[-1])
        refused.append(await bill(system, business, one))
    assert len(set(refused)) == 3
    assert await bill(system, business, one) == refused[-1]
    assert len(await business.rows(OUTBOX)) == 3


@pytest.mark.parametrize("given", [{"status": "pending"}, {"total": None}, {"total": 0}])
async def test_other_jobs_are_refused(
    system: System, harnessed: Harness, business: Business, given: dict[str, Any]
) -> None:
    with pytest.raises(NotBillable, match="must be completed"):
        await bill(system, business, await job(business, **given))
    with pytest.raises(NotBillable, match="no job"):
        await bill(system, business, uuid4())
    assert await business.rows("SELECT 1 FROM campotech.invoices") == []


@pytest.mark.parametrize(
    ("issuer", "receiver", "kind"),
    [(1, 5, "B"), (1, 1, "A"), (1, 6, "A"), (6, 1, "C"), (4, 5, "C")],
)
def test_the_conditions_of_both_sides_decide_the_class(
    issuer: int, receiver: int, kind: str
) -> None:
    assert kind_of(issuer, receiver, "20304050603") == kind


def test_an_invoice_a_needs_a_cuit() -> None:
    with pytest.raises(NotBillable, match="CUIT"):
        kind_of(1, 1, "30405060")


@pytest.mark.parametrize(
    ("net", "kind", "vat"),
    [(2, "B", 0), (3, "B", 1), (150, "A", 32), (1_000_07, "B", 210_01), (9, "C", 0)],
)
def test_vat_is_rounded_to_the_nearest_centavo(net: int, kind: str, vat: int) -> None:
    one = NewInvoice(
        organization=uuid4(), key="k", customer=uuid4(), kind=kind, point_of_sale=1, net_cents=net
    )
    assert one.vat_cents == vat


def test_net_and_vat_make_the_price_again_where_any_net_does() -> None:
    prices = {net + (net * 21 + 50) // 100: net for net in range(1, 3000)}
    for total in range(1, 3000):
        assert net_of(total, "B") == prices.get(total, net_of(total, "B"))
        assert abs(net_of(total, "B") * 121 - total * 100) <= 61, "to the nearest centavo"
        assert net_of(total, "C") == total
