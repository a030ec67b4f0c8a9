"""What is written down of a number is believed only as far as the tax office confirms it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from apps.campotech.invoicing.invoice import Invoice
from apps.campotech.invoicing.issue import BUENOS_AIRES, note_issued
from apps.campotech.system import System
from apps.providers.afip import Authorized
from apps.sandbox.sandbox import Sandbox

from apps.campotech.invoicing import invoice as invoices
from faena.testing import Harness
from tests.apps.campotech.business import Business
from tests.apps.campotech.invoicing.test_issue import ask, issued, row, run, series

DATES = "SELECT voucher_date FROM campotech.invoices WHERE id = %s"


def today() -> date:
    return datetime.now(BUENOS_AIRES).date()


async def numbered(business: Business, number: int, day: date | None = None) -> UUID:
    """An invoice that may have been sent."""
    made = await business.invoice()
    await business.rows(
        "UPDATE campotech.invoices SET status = 'sending', number = %s, voucher_date = %s "
        "WHERE id = %s RETURNING 1",
        number,
        day or today(),
        made,
    )
    return made


async def found(system: System, business: Business, invoice: UUID) -> Invoice:
    async with system.pg.transaction() as connection:
        one = await invoices.find(connection, business.id, invoice)
    assert one is not None
    return one


async def test_a_number_that_is_not_the_next_one_is_given_up(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    invoice = await numbered(business, 5)
    await ask(system, business, invoice)
    await run(harnessed, "10s")
    assert (await row(business, invoice))[:2] == (1, "issued")
    assert issued(sandbox) == series(business, 1)


async def test_a_voucher_that_was_not_sent_in_time_is_sent_with_the_day_of_today(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    invoice = await numbered(business, 1, today() - timedelta(days=6))
    await ask(system, business, invoice)
    await run(harnessed, "10s")
    assert (await row(business, invoice))[:2] == (1, "issued")
    assert await business.rows(DATES, invoice) == [(today(),)]


async def test_a_holder_whose_request_arrives_late_keeps_its_number(
    system: System,
    harnessed: Harness,
    business: Business,
    sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    holder, next_one = await numbered(business, 1), await business.invoice()
    sent, ask_last = await found(system, business, holder), system.afip.last_authorized

    async def ask_before_it_arrives(*given: Any) -> int:
        last = await ask_last(*given)
        if last == 0:
            await system.afip.request_cae(business.cuit, sent.voucher())
        return last

    monkeypatch.setattr(system.afip, "last_authorized", ask_before_it_arrives)
    await ask(system, business, next_one)
    await run(harnessed, "1m")
    assert (await row(business, holder))[:2] == (1, "issued")
    assert (await row(business, next_one))[:2] == (2, "issued")
    assert issued(sandbox) == series(business, 1, 2)


async def test_each_kind_of_invoice_has_numbers_of_its_own(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    other = await numbered(business, 1)
    await business.rows("UPDATE campotech.invoices SET kind = 'A' WHERE id = %s RETURNING 1", other)
    invoice = await business.invoice()
    await ask(system, business, invoice)
    await run(harnessed, "10s")
    assert (await row(business, invoice))[:2] == (1, "issued")
    assert (await row(business, other))[:2] == (1, "sending")


async def test_a_worker_that_comes_back_too_late_gives_no_cae_to_another_number(
    system: System, harnessed: Harness, business: Business
) -> None:
    invoice = await numbered(business, 2)
    stale = replace(await found(system, business, invoice), number=1)
    answer = Authorized(cae="74000000000001", expires_on=today(), number=1)
    async with system.pg.transaction() as connection:
        assert not await note_issued(connection, stale, answer)
    assert (await row(business, invoice))[:3] == (2, "sending", None)
