"""AFIP as an upstream: the figures of its limits, and what its errors mean to jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from apps.providers.afip import (
    AfipError,
    Client,
    ClockSkewed,
    Invalid,
    LoginRefused,
    NotAuthorized,
    NumberTaken,
    Permanent,
    RateLimited,
    Rejected,
    Retryable,
    TicketHeld,
    UnknownOutcome,
    Voucher,
    afip_upstream,
)
from apps.sandbox.afip import Afip

from apps.sandbox import Fault
from faena import Breaker, Faena, UpstreamUnavailable
from tests._support.valkey import Server
from tests.apps.afip.speech import CUIT


@pytest.fixture
async def shop(server: Server) -> AsyncIterator[Faena]:
    app = Faena("shop", server.url)
    yield app
    await app.close()


async def test_limits_and_breaker_are_those_of_the_plan(shop: Faena) -> None:
    upstream = afip_upstream(shop)
    view = await upstream.view()
    assert [str(use.limit) for use in view.limits] == ["60/min", "1000/h", "10000/day"]
    options = upstream.options
    assert (options.timeout, options.panic_after) == ("30s", 5)
    assert (options.breaker.errors, options.breaker.open_us) == (0.5, 60_000_000)


async def test_options_can_be_others(shop: Faena) -> None:
    upstream = afip_upstream(shop, limits=["5/s"], breaker=Breaker(volume=3), panic_after=None)
    assert (upstream.options.breaker.volume, upstream.options.panic_after) == (3, None)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (UnknownOutcome, "unknown"),
        (Retryable, "retryable"),
        (TicketHeld, "retryable"),
        (ClockSkewed, "retryable"),
        (RateLimited, "rate_limited"),
        (Permanent, "permanent"),
        (Invalid, "permanent"),
        (LoginRefused, "permanent"),
        (NotAuthorized, "permanent"),
        (Rejected, "permanent"),
        (NumberTaken, "permanent"),
    ],
)
async def test_every_error_has_its_meaning(shop: Faena, error: type[AfipError], kind: str) -> None:
    meaning = afip_upstream(shop).sorts(error("a message"))
    assert meaning is not None
    assert meaning.kind == kind


async def test_an_outage_opens_the_breaker_and_no_call_gets_through(
    shop: Faena, client: Client, afip: Afip, voucher: Voucher
) -> None:
    upstream = afip_upstream(shop, breaker=Breaker(volume=3, open="60s"))
    await client.last_authorized(CUIT, 1, voucher.kind)
    afip.faults.add(Fault(kind="status", status=503))
    for _ in range(3):
        with pytest.raises(UnknownOutcome):
            async with upstream.call():
                await client.request_cae(CUIT, voucher)
    with pytest.raises(UpstreamUnavailable) as caught:
        async with upstream.call():
            await client.request_cae(CUIT, voucher)
    assert caught.value.reason == "open"
    assert len(afip.ledger.of("FECAESolicitar")) == 3


async def test_refused_vouchers_do_not_open_the_breaker(
    shop: Faena, client: Client, afip: Afip, voucher: Voucher
) -> None:
    upstream = afip_upstream(shop, breaker=Breaker(volume=2))
    wrong = replace(voucher, point_of_sale=9)
    for _ in range(4):
        with pytest.raises(Rejected):
            async with upstream.call():
                await client.request_cae(CUIT, wrong)
    assert (await upstream.view()).state == "closed"


async def test_a_wait_that_is_asked_for_is_kept(
    shop: Faena, client: Client, afip: Afip, voucher: Voucher
) -> None:
    upstream = afip_upstream(shop)
    await client.last_authorized(CUIT, 1, voucher.kind)
    afip.faults.add(Fault(kind="status", status=429, seconds=900, times=1))
    with pytest.raises(RateLimited):
        async with upstream.call():
            await client.request_cae(CUIT, voucher)
    with pytest.raises(UpstreamUnavailable) as caught:
        async with upstream.call():
            await client.request_cae(CUIT, voucher)
    assert caught.value.reason == "rate_limited"
    assert 600 < caught.value.retry_after <= 900
