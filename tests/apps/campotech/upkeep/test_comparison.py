"""Comparisons go through all pages, count each once, and read back what may still change."""

from __future__ import annotations

from datetime import timedelta

import pytest
from apps.campotech.upkeep.comparison import Part, Period, Position
from apps.campotech.upkeep.payment_comparison import Payments

from apps.campotech.upkeep import message_comparison, reconciliation
from faena.testing import run_inline
from tests.apps.campotech.messaging.office import Office
from tests.apps.campotech.payments.test_take import paid, pay
from tests.apps.campotech.upkeep.test_reconciliation import (
    days,
    outbound,
    reconcile,
    since_last_month,
    wanted,
)

SUMS = "SELECT looked_at, repaired, differing FROM campotech.reconciliations"


@pytest.mark.parametrize(
    ("open_", "later"), [("pending", "approved"), ("in_mediation", "approved")]
)
async def test_a_payment_of_long_ago_that_may_still_change_is_read_back(
    office: Office, open_: str, later: str
) -> None:
    invoice = await office.business.invoice()
    payment = await pay(office.system, office.world, invoice, 100_00)
    payment.status = open_
    await reconcile(office, wanted("payments"))
    payment.created_at -= timedelta(days=40)
    office.world.mercadopago.settle(payment.id, "approved")
    assert await reconcile(office, wanted("payments")) == (1, 1, 0)
    assert await paid(office.business, invoice) == 100_00


async def test_a_worker_that_comes_back_too_late_counts_nothing_again(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    invoice, message = await office.business.invoice(), wanted("payments")
    for _ in range(2):
        await pay(office.system, office.world, invoice, 100_00)
    await pay(office.system, office.world, "nobody's", 1_00)
    read, frozen = Payments.read, list[Position]()

    async def read_and_freeze(self: Payments, period: Period, position: Position) -> Part:
        part = await read(self, period, position)
        if not frozen:
            frozen.append(position)
            await run_inline(office.system.reconciling.reconcile, message)  # by another worker
        return part

    monkeypatch.setattr(Payments, "read", read_and_freeze)
    await run_inline(office.system.reconciling.reconcile, message)
    assert await office.rows(SUMS) == [(3, 2, 1)]
    audits = "SELECT count(*) FROM campotech.audit_logs WHERE action = 'payment'"
    assert await office.rows(audits) == [(2,)]


async def test_more_messages_than_a_page_are_gone_through(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_comparison, "PAGE", 2)
    await since_last_month(office)
    silent = [await outbound(office, "unknown", timedelta(hours=25 + n)) for n in range(5)]
    assert await reconcile(office, wanted("messages", **days(3))) == (5, 0, 5)
    assert {await office.status_of(one) for one in silent} == {"unconfirmed"}


async def test_all_differences_are_counted_and_the_first_of_them_are_listed(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciliation, "MOST_LISTED", 2)
    for _ in range(3):
        await pay(office.system, office.world, "nobody's", 1_00)
    assert await reconcile(office, wanted("payments")) == (3, 0, 3)
    listed = "SELECT jsonb_array_length(differences) FROM campotech.reconciliations"
    assert await office.rows(listed) == [(2,)]
