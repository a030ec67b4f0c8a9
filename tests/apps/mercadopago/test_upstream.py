"""As an upstream of Faena: what its errors mean, when calls stop, and what to do meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from apps.providers.mercadopago import (
    Client,
    Conflict,
    Invalid,
    ManualPayment,
    NotFound,
    Permanent,
    RateLimited,
    Retryable,
    Settings,
    Unauthorized,
    UnknownOutcome,
    manual_payment,
    mercadopago_upstream,
)
from apps.sandbox.mercadopago import MercadoPago, Payment

from apps.sandbox import Fault
from faena import Breaker, Faena, Retry, UpstreamUnavailable
from faena.errors import JobFailed
from tests._support.eventually import eventually
from tests._support.valkey import Server
from tests._support.working import serving

AT_ONCE = Retry.fixed("10ms", attempts=3, floor="0s")


@pytest.fixture
async def shop(server: Server) -> AsyncIterator[Faena]:
    app = Faena("shop", server.url)
    yield app
    await app.close()


async def test_it_is_declared_with_the_figures_of_the_house(shop: Faena) -> None:
    upstream = mercadopago_upstream(shop)
    assert (upstream.name, upstream.options.timeout) == ("mercadopago", "15s")
    assert (upstream.options.breaker.errors, upstream.options.breaker.open) == (0.5, "30s")


async def test_options_can_be_given(shop: Faena) -> None:
    upstream = mercadopago_upstream(shop, timeout="2s", limits=["10/s"])
    assert (upstream.options.timeout, len(upstream.options.limits)) == ("2s", 1)


async def test_every_error_is_sorted(shop: Faena) -> None:
    upstream = mercadopago_upstream(shop)
    kinds = {
        "retryable": [Retryable("x")],
        "rate_limited": [RateLimited("x")],
        "permanent": [one("x") for one in (Permanent, Invalid, Unauthorized, NotFound, Conflict)],
        "unknown": [UnknownOutcome("x", status=503)],
    }
    for kind, errors in kinds.items():
        assert {upstream.sorts(one).kind for one in errors} == {kind}


async def test_a_wait_that_was_asked_for_is_kept(
    shop: Faena, client: Client, mp: MercadoPago, paid: Payment
) -> None:
    upstream = mercadopago_upstream(shop)
    mp.faults.add(Fault(kind="status", status=429, seconds=90, times=1))
    with pytest.raises(RateLimited):
        await upstream.run(client.get_payment, str(paid.id))

    async def is_refused() -> bool:
        try:
            await upstream.run(client.get_payment, str(paid.id))
        except UpstreamUnavailable as error:
            return 30 < error.retry_after <= 90
        return False

    await eventually(is_refused)


async def test_a_refund_whose_answer_was_lost_is_given_once(
    shop: Faena, client: Client, mp: MercadoPago, paid: Payment
) -> None:
    upstream = mercadopago_upstream(shop)

    @shop.queue("payments", retry=AT_ONCE).task(upstreams=[upstream])
    async def refund(payment_id: str) -> int:
        made = await client.refund(payment_id, key=f"refund-{payment_id}", amount_centavos=50)
        return made.amount_centavos

    mp.faults.add(Fault(kind="lost", times=2))
    handle = (await refund.enqueue(str(paid.id))).handle
    async with serving(shop):
        assert await handle.result(timeout="60s") == 50
    assert (paid.refunded_centavos, len(mp.account.keys)) == (50, 1)
    assert len(mp.ledger.of("POST /v1/payments/{id}/refunds")) == 3


async def test_a_refusal_is_not_tried_again(shop: Faena, client: Client, mp: MercadoPago) -> None:
    upstream = mercadopago_upstream(shop)

    @shop.queue("payments", retry=AT_ONCE).task(upstreams=[upstream])
    async def look(payment_id: str) -> str:
        return (await client.get_payment(payment_id)).status

    handle = (await look.enqueue("1")).handle
    async with serving(shop):
        with pytest.raises(JobFailed, match="answered 404"):
            await handle.result(timeout="60s")
    assert len(mp.ledger.entries) == 1


async def test_while_it_is_out_customers_pay_by_transfer(
    shop: Faena, client: Client, mp: MercadoPago, settings: Settings, paid: Payment
) -> None:
    upstream = mercadopago_upstream(shop, breaker=Breaker(volume=4, open="10m"))
    mp.faults.add(Fault(kind="status", status=503))

    @upstream.with_fallback(lambda: manual_payment(settings, 10_050, "invoice-1"))
    async def ask() -> ManualPayment | object:
        return await client.get_payment(str(paid.id))

    async def answer() -> bool:
        try:
            found = await ask()
        except Retryable:
            return False
        return isinstance(found, ManualPayment) and found.alias == "campo.tech.mp"

    await eventually(answer)
    asked = len(mp.ledger.entries)
    assert isinstance(await ask(), ManualPayment)
    assert len(mp.ledger.entries) == asked
