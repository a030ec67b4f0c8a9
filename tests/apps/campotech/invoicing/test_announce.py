"""The customer of an invoice is told of it once, whatever is lost on the way."""

from __future__ import annotations

from datetime import timedelta

import pytest
from apps.campotech.invoicing.issue import wanted_document
from apps.campotech.system import System
from apps.sandbox.sandbox import Sandbox

from faena.testing import Harness
from tests.apps.campotech.business import Business
from tests.apps.campotech.invoicing.test_issue import OLDER, ask
from tests.apps.campotech.outbox import settle


@pytest.fixture(autouse=True)
async def _published(system: System) -> None:
    """As a worker does when it starts."""
    await system.pg.outbox.publish()


def told(sandbox: Sandbox) -> list[str]:
    """The templates that customers have got."""
    return [one.body["template"]["name"] for one in sandbox.whatsapp.conversation.sent.values()]


async def test_a_message_that_the_broker_has_forgotten_is_not_sent_again(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    invoice = await business.invoice()
    await ask(system, business, invoice)
    await settle(system, harnessed)
    assert told(sandbox) == ["invoice_ready"]
    await system.queues["whatsapp.outbound"].clean("completed", age=timedelta(0))
    wanted = wanted_document(business.message(invoice))
    again = await system.documents.announce.enqueue(wanted, tenant=str(business.id))
    await settle(system, harnessed)
    assert await again.handle.result(timeout="10s") == "known"
    assert told(sandbox) == ["invoice_ready"]


async def test_a_customer_who_was_not_told_is_told_later(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    invoice = await business.invoice()
    await ask(system, business, invoice)
    await harnessed.drain("afip.invoice", "invoice.pdf", schedules=False)
    for queue in system.queues.values():  # the broker has lost everything
        await queue.obliterate(force=True)
    await business.rows(OLDER, timedelta(hours=1), [invoice])
    assert await system.pending.find() == 1
    await settle(system, harnessed)
    assert told(sandbox) == ["invoice_ready"]
    await business.rows("UPDATE campotech.invoices SET looked_at = NULL RETURNING 1")
    assert await system.pending.find() == 0, "nothing is left to do"


async def test_a_customer_without_a_phone_is_looked_for_once(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    await business.rows("UPDATE campotech.customers SET phone = NULL RETURNING 1")
    invoice = await business.invoice()
    await ask(system, business, invoice)
    await settle(system, harnessed)
    await business.rows(OLDER, timedelta(hours=1), [invoice])
    assert await system.pending.find() == 0
    assert told(sandbox) == []
