"""What jobs have died of, and whether they are tried again an hour later: 000 §11.1."""

from __future__ import annotations

import pytest
from apps.campotech.system import System
from apps.providers import afip, mail, mercadopago, openai, push, sms, storage, whatsapp
from apps.sandbox.sandbox import Sandbox

from apps.campotech.messages import PaymentWebhook
from apps.sandbox import Fault
from faena import Discard
from faena.errors import PayloadError, StoreUnavailable
from faena.testing import Harness
from tests.apps.campotech.business import Business
from tests.apps.campotech.payments.test_take import pay, told

SERVICES = [afip, mail, mercadopago, openai, push, sms, whatsapp]


@pytest.mark.parametrize("service", SERVICES, ids=lambda one: one.__name__.rpartition(".")[2])
def test_a_service_that_was_out_is_called_again(system: System, service: object) -> None:
    desk = system.app.dead_letter_options
    for name in ("Retryable", "UnknownOutcome"):
        assert desk.retries(None, getattr(service, name)("it was out")), name
    assert not desk.retries(None, service.Permanent("refused"))  # pyright: ignore[reportAttributeAccessIssue]


def test_a_database_that_was_out_is_asked_again_and_wrong_messages_are_not(system: System) -> None:
    desk = system.app.dead_letter_options
    assert desk.retries(None, StoreUnavailable("no connection"))
    assert desk.retries(None, storage.Retryable("out"))
    assert not any(
        desk.retries(None, one) for one in (PayloadError("x"), Discard("x"), ValueError())
    )


async def test_a_payment_that_mercadopago_would_not_show_waits_for_its_retry(
    system: System, harnessed: Harness, business: Business, sandbox: Sandbox
) -> None:
    payment = await pay(system, sandbox, await business.invoice(), 100_00)
    sandbox.mercadopago.faults.add(Fault(kind="cut"))
    message: PaymentWebhook = told(business, payment.id)
    receipt = await system.payments.take.enqueue(message, tenant=str(business.id))
    await harnessed.drain("payment.webhook", schedules=False, through="5m")
    letter = await system.app.dead_letters.get("payment.webhook", receipt.id)
    assert letter is not None
    assert letter.retry_at is not None
