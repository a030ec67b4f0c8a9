"""Customers get a link to pay at; while MercadoPago is out, the account to transfer to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from apps.campotech.system import System
from apps.sandbox.sandbox import Sandbox

from apps.sandbox import Fault
from tests.apps.campotech.business import Business


def preferences(sandbox: Sandbox, invoice: UUID) -> list[Mapping[str, Any]]:
    made = sandbox.mercadopago.account.preferences.values()
    return [one for one in made if one["external_reference"] == str(invoice)]


async def asked(api: httpx.AsyncClient, invoice: UUID) -> httpx.Response:
    return await api.post(f"/api/v1/invoices/{invoice}/payment-link")


async def test_a_link_names_the_invoice_its_amount_and_where_news_go(
    api: httpx.AsyncClient, business: Business, system: System, sandbox: Sandbox
) -> None:
    invoice = await business.invoice(net_cents=100_00)
    answer = await asked(api, invoice)
    (made,) = preferences(sandbox, invoice)
    assert answer.json() == {"url": made["init_point"], "fallback": False}
    assert made["items"][0]["unit_price"] == 121
    assert made["notification_url"] == (
        f"{system.settings.public_url}/webhooks/mercadopago/{business.id}"
    )


async def test_the_same_link_is_given_again_until_another_amount_is_due(
    api: httpx.AsyncClient, business: Business, sandbox: Sandbox
) -> None:
    invoice = await business.invoice(net_cents=100_00)
    first, again = [(await asked(api, invoice)).json() for _ in range(2)]
    assert first == again
    assert len(preferences(sandbox, invoice)) == 1
    async with business.system.pg.transaction() as connection:
        await connection.execute("UPDATE campotech.invoices SET paid_cents = 2100")
    other = (await asked(api, invoice)).json()
    assert other["url"] != first["url"]
    assert [one["items"][0]["unit_price"] for one in preferences(sandbox, invoice)] == [121, 100]
    assert (await asked(api, invoice)).json() == other


async def test_while_mercadopago_is_out_customers_learn_where_to_transfer(
    api: httpx.AsyncClient, business: Business, system: System, sandbox: Sandbox
) -> None:
    invoice = await business.invoice(net_cents=123_45)
    sandbox.mercadopago.faults.add(Fault(kind="status", status=503))
    failed = (await asked(api, invoice)).json()
    sandbox.mercadopago.faults.clear()
    await system.upstreams.mercadopago.panic(reason="out")
    refused = (await asked(api, invoice)).json()
    settings = system.settings.mercadopago
    assert failed == refused
    assert refused == {
        "url": None,
        "fallback": True,
        "manualPaymentInstructions": {
            "alias": settings.alias,
            "cbu": settings.cbu,
            "amount": "149.37",
            "reference": str(invoice),
        },
    }
    assert preferences(sandbox, invoice) == []
    await system.upstreams.mercadopago.end_panic()
    assert (await asked(api, invoice)).json()["url"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("paid_cents = total_cents", "the invoice is paid"),
        ("status = 'failed'", "the invoice was refused by AFIP"),
    ],
)
async def test_what_nobody_should_pay_has_no_link(
    api: httpx.AsyncClient, business: Business, sandbox: Sandbox, change: str, words: str
) -> None:
    invoice = await business.invoice()
    async with business.system.pg.transaction() as connection:
        await connection.execute(f"UPDATE campotech.invoices SET {change}".encode())
    answer = await asked(api, invoice)
    assert (answer.status_code, answer.json()["detail"]) == (409, words)
    assert preferences(sandbox, invoice) == []


async def test_an_invoice_of_another_organisation_is_unknown(
    api: httpx.AsyncClient, system: System, sandbox: Sandbox
) -> None:
    other = await Business.make(system, sandbox, number="2")
    invoice = await other.invoice()
    answers = [await asked(api, invoice), await asked(api, uuid4())]
    assert [one.status_code for one in answers] == [404, 404]
    assert answers[0].json() == answers[1].json()
    assert preferences(sandbox, invoice) == []


async def test_a_link_that_mercadopago_refuses_is_said_to_be(
    api: httpx.AsyncClient, business: Business, sandbox: Sandbox
) -> None:
    sandbox.mercadopago.faults.add(Fault(kind="status", status=400))
    answer = await asked(api, await business.invoice())
    assert (answer.status_code, answer.json()["title"]) == (502, "A service refused")
