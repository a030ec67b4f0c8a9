"""As an upstream of Faena: limits, what its errors mean, and recipients who must wait."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from apps.providers.whatsapp import (
    Blocked,
    Client,
    Invalid,
    MediaGone,
    OutsideWindow,
    PairLimited,
    Permanent,
    RateLimited,
    Retryable,
    Text,
    Unauthorized,
    UnknownOutcome,
    waiting_for_recipient,
    whatsapp_upstream,
)
from apps.sandbox.whatsapp import Rate, WhatsApp

from apps.sandbox import Fault
from faena import Faena, Limit, Retry, UpstreamUnavailable
from faena.errors import JobFailed
from tests._support.eventually import eventually
from tests._support.valkey import Server
from tests._support.working import serving
from tests.apps.whatsapp.conftest import ANA

HELLO = Text(body="hola")
AT_ONCE = Retry.fixed("10ms", attempts=3, floor="0s")


@pytest.fixture
async def shop(server: Server) -> AsyncIterator[Faena]:
    app = Faena("shop", server.url)
    yield app
    await app.close()


async def test_it_is_declared_with_the_figures_of_the_house(shop: Faena) -> None:
    options = whatsapp_upstream(shop).options
    assert (options.limits, options.tenant_limits) == ((Limit("80/s"),), (Limit("50/min"),))
    assert (options.timeout, options.breaker.errors) == ("15s", 0.5)


async def test_every_error_is_sorted(shop: Faena) -> None:
    upstream = whatsapp_upstream(shop)
    kinds = {
        "retryable": [Retryable("x"), MediaGone("x"), PairLimited("x", retry_after=6)],
        "rate_limited": [RateLimited("x", retry_after=5)],
        "permanent": [
            one("x") for one in (Permanent, Invalid, Unauthorized, Blocked, OutsideWindow)
        ],
        "unknown": [UnknownOutcome("x")],
    }
    for kind, errors in kinds.items():
        assert {upstream.sorts(one).kind for one in errors} == {kind}
    assert upstream.sorts(RateLimited("x", retry_after=5)).retry_after == 5


async def test_an_organisation_that_has_sent_enough_waits_alone(
    shop: Faena, client: Client, wa: WhatsApp
) -> None:
    upstream = whatsapp_upstream(shop, tenant_limits=["3/h"])

    async def send(tenant: str) -> None:
        async with upstream.call(tenant=tenant):
            await client.send(ANA, HELLO)

    for _ in range(3):
        await send("org-1")
    with pytest.raises(UpstreamUnavailable) as caught:
        await send("org-1")
    assert caught.value.reason == "tenant_limit"
    await send("org-2")
    assert len(wa.conversation.sent) == 4


async def test_a_limit_of_the_service_stops_all_calls(
    shop: Faena, client: Client, wa: WhatsApp
) -> None:
    upstream = whatsapp_upstream(shop)
    wa.faults.add(Fault(kind="status", status=429, seconds=90, times=1))
    with pytest.raises(RateLimited):
        await upstream.run(client.send, ANA, HELLO)

    async def is_refused() -> bool:
        try:
            await upstream.run(client.send, ANA, HELLO)
        except UpstreamUnavailable as error:
            return 5 < error.retry_after <= 90
        return False

    await eventually(is_refused)


async def test_a_recipient_who_must_wait_holds_only_their_job(
    shop: Faena, client: Client, wa: WhatsApp
) -> None:
    """The job waits without using an attempt; other recipients' jobs go on."""
    upstream = whatsapp_upstream(shop)
    wa.rate = Rate(pair_burst=1)
    other = "5491155559999"

    @shop.queue("messages", retry=Retry.never()).task(upstreams=[upstream])
    async def send(to: str) -> str:
        with waiting_for_recipient():
            return (await client.send(to, HELLO)).message_id

    receipts = [await send.enqueue(to) for to in (ANA, ANA, other)]
    async with serving(shop):
        await receipts[0].handle.result(timeout="60s")
        await receipts[2].handle.result(timeout="60s")
        await eventually(lambda: wa.ledger.of("POST /{id}/messages", "refused"))

        async def is_waiting() -> bool:
            return await receipts[1].handle.state() == "delayed"

        await eventually(is_waiting)
    view = await upstream.view()
    assert (view.state, view.error_rate or 0) == ("closed", 0)


async def test_a_message_whose_outcome_is_unknown_is_not_repeated_if_the_handler_decides_so(
    shop: Faena, client: Client, wa: WhatsApp
) -> None:
    upstream = whatsapp_upstream(shop)
    wa.faults.add(Fault(kind="lost", times=1))

    @shop.queue("messages", retry=AT_ONCE).task(upstreams=[upstream])
    async def send(to: str) -> str:
        try:
            async with upstream.call():
                return (await client.send(to, HELLO, callback_data="msg-1")).message_id
        except UnknownOutcome:
            return "wait for a status of msg-1"

    handle = (await send.enqueue(ANA)).handle
    async with serving(shop):
        assert await handle.result(timeout="60s") == "wait for a status of msg-1"
    assert len(wa.conversation.sent) == 1


async def test_a_refusal_is_not_tried_again(shop: Faena, client: Client, wa: WhatsApp) -> None:
    upstream = whatsapp_upstream(shop)

    @shop.queue("messages", retry=AT_ONCE).task(upstreams=[upstream])
    async def mark(message_id: str) -> None:
        await client.mark_read(message_id)

    handle = (await mark.enqueue("wamid.unknown")).handle
    async with serving(shop):
        with pytest.raises(JobFailed, match="code 131009: a value is not valid"):
            await handle.result(timeout="60s")
    assert len(wa.ledger.entries) == 1
