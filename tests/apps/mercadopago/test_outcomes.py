"""Every way a call can go wrong is one of four kinds, and no error tells a secret."""

from __future__ import annotations

import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from apps.providers.mercadopago import (
    Client,
    Conflict,
    MercadoPagoError,
    NotFound,
    PaymentSearch,
    Permanent,
    RateLimited,
    Retryable,
    Settings,
    Unauthorized,
    UnknownOutcome,
)
from apps.providers.mercadopago.exchange import MOST_BYTES
from apps.sandbox.mercadopago import MercadoPago, Payment
from apps.sandbox.stand_in import serving
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from apps.sandbox import Fault
from tests._support.eventually import eventually
from tests.apps.mercadopago.conftest import preference

REFUND = "POST /v1/payments/{id}/refunds"


@pytest.mark.parametrize(
    ("status", "read", "written"),
    [
        (400, Permanent, Permanent),
        (401, Unauthorized, Unauthorized),
        (402, Permanent, Permanent),
        (403, Unauthorized, Unauthorized),
        (404, NotFound, NotFound),
        (408, Retryable, Retryable),
        (409, Conflict, Conflict),
        (422, Permanent, Permanent),
        (423, Retryable, Retryable),
        (424, Retryable, Retryable),
        (429, RateLimited, RateLimited),
        (500, Retryable, UnknownOutcome),
        (502, Retryable, UnknownOutcome),
        (503, Retryable, UnknownOutcome),
        (504, Retryable, UnknownOutcome),
    ],
)
async def test_a_status_means_one_thing(
    client: Client,
    mp: MercadoPago,
    paid: Payment,
    status: int,
    read: type[MercadoPagoError],
    written: type[MercadoPagoError],
) -> None:
    mp.faults.add(Fault(kind="status", status=status))
    for call, kind in (
        (client.get_payment(str(paid.id)), read),
        (client.refund(str(paid.id), key="k"), written),
        (client.create_preference(preference()), written),
    ):
        with pytest.raises(MercadoPagoError) as caught:
            await call
        assert type(caught.value) is kind
        assert caught.value.status == status


async def test_a_429_says_how_long_to_wait(client: Client, mp: MercadoPago, paid: Payment) -> None:
    mp.faults.add(Fault(kind="status", status=429, seconds=7, times=1))
    with pytest.raises(RateLimited) as caught:
        await client.get_payment(str(paid.id))
    assert caught.value.retry_after == "7"
    mp.faults.add(Fault(kind="status", status=429, times=1))
    with pytest.raises(RateLimited) as caught:
        await client.get_payment(str(paid.id))
    assert caught.value.retry_after is None


@pytest.mark.parametrize("status", [409, 423])
async def test_a_key_whose_first_request_is_under_way_is_tried_again(
    client: Client, mp: MercadoPago, paid: Payment, status: int
) -> None:
    mp.held_keys["refund-1"] = status
    with pytest.raises(Retryable):
        await client.refund(str(paid.id), key="refund-1")
    mp.held_keys.clear()
    await client.refund(str(paid.id), key="refund-1")
    assert paid.refunded_centavos == paid.amount_centavos


async def test_a_lost_answer_to_a_refund_is_unknown_and_the_same_key_finds_it(
    client: Client, mp: MercadoPago, paid: Payment
) -> None:
    mp.faults.add(Fault(kind="lost", operation=REFUND, times=1))
    with pytest.raises(UnknownOutcome):
        await client.refund(str(paid.id), key="refund-1", amount_centavos=50)
    again = await client.refund(str(paid.id), key="refund-1", amount_centavos=50)
    assert again.amount_centavos == paid.refunded_centavos == 50


async def test_a_cut_refund_is_unknown_and_the_same_key_does_it(
    client: Client, mp: MercadoPago, paid: Payment
) -> None:
    mp.faults.add(Fault(kind="cut", operation=REFUND, times=1))
    with pytest.raises(UnknownOutcome):
        await client.refund(str(paid.id), key="refund-1", amount_centavos=50)
    assert paid.refunded_centavos == 0
    await client.refund(str(paid.id), key="refund-1", amount_centavos=50)
    assert paid.refunded_centavos == 50


async def test_a_lost_preference_is_found_by_its_reference(client: Client, mp: MercadoPago) -> None:
    mp.faults.add(Fault(kind="lost", times=1))
    with pytest.raises(UnknownOutcome):
        await client.create_preference(preference("invoice-9"))
    (found,) = await client.find_preferences("invoice-9")
    assert found in mp.account.preferences


async def test_a_lost_answer_to_a_read_can_be_asked_again(
    client: Client, mp: MercadoPago, paid: Payment
) -> None:
    mp.faults.add(Fault(kind="lost", times=1))
    with pytest.raises(Retryable):
        await client.get_payment(str(paid.id))


async def test_an_answer_about_something_else_is_not_believed(
    client: Client, mp: MercadoPago, paid: Payment
) -> None:
    mp.faults.add(Fault(kind="wrong"))
    with pytest.raises(Retryable, match="about something else"):
        await client.get_payment(str(paid.id))
    with pytest.raises(UnknownOutcome, match="about something else"):
        await client.refund(str(paid.id), key="k")
    with pytest.raises(UnknownOutcome, match="init_point is missing"):
        await client.create_preference(preference())


async def test_a_slow_answer_is_cut_off(
    settings: Settings, http: httpx.AsyncClient, mp: MercadoPago, paid: Payment
) -> None:
    mp.faults.add(Fault(kind="slow", seconds=2))
    already = len(mp.ledger.entries)
    hasty = Settings(access_token=mp.access_token, base_url=mp.url, timeout_s=0.5)
    client = Client(hasty, http)
    with pytest.raises(UnknownOutcome):
        await client.refund(str(paid.id), key="k")
    with pytest.raises(Retryable):
        await client.get_payment(str(paid.id))
    await eventually(lambda: len(mp.ledger.entries) == already + 2)  # the service goes on


async def test_a_service_that_is_not_there_was_not_asked(http: httpx.AsyncClient) -> None:
    async with serving(Starlette()) as url:
        pass
    client = Client(Settings(access_token="x", base_url=url), http)
    with pytest.raises(Retryable, match="could not be reached"):
        await client.refund("1", key="k")


@asynccontextmanager
async def answering(response: Response, http: httpx.AsyncClient) -> AsyncIterator[Client]:
    """A client of a service that gives one answer to everything."""

    async def answer(_request: Request) -> Response:
        return response

    methods = ["GET", "POST"]
    app = Starlette(routes=[Route("/{path:path}", answer, methods=methods)])
    async with serving(app) as url:
        yield Client(Settings(access_token="s3cret-token", base_url=url), http)


HOSTILE = {
    "no JSON": b"<html>maintenance</html>",
    "half of it": b'{"id": 1, "status": "appr',
    "nothing": b"",
    "another type": b"[1, 2]",
    "null": b"null",
    "no text": b"\xff\xfe\x00",
    "too deep": b"[" * 100_000,
    "no number": b'{"id": 1, "status": "a", "transaction_amount": NaN, "currency_id": "A"}',
    "a thousandth": b'{"id": 1, "status": "a", "transaction_amount": 1.005, "currency_id": "A"}',
    "a list of ids": b'{"id": [1], "status": "a", "transaction_amount": 1, "currency_id": "A"}',
    "a long number": b'{"id": ' + b"9" * 5000 + b"}",
    "no instant": b'{"id": 1, "status": "a", "transaction_amount": 1, "currency_id": "A",'
    b' "date_created": "yesterday"}',
    "no offset": b'{"id": 1, "status": "a", "transaction_amount": 1, "currency_id": "A",'
    b' "date_created": "2026-01-01T00:00:00"}',
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
async def test_an_answer_that_cannot_be_read_is_retryable_for_reads_only(
    http: httpx.AsyncClient, body: bytes
) -> None:
    async with answering(Response(body, 200, media_type="application/json"), http) as client:
        with pytest.raises(Retryable, match="cannot be read"):
            await client.get_payment("1")
        with pytest.raises(UnknownOutcome, match="cannot be read"):
            await client.refund("1", key="k")


async def test_a_page_that_was_not_asked_for_does_not_lead_in_circles(
    http: httpx.AsyncClient,
) -> None:
    payment = b'{"id": 1, "status": "a", "transaction_amount": 1, "currency_id": "A"}'
    page = b'{"paging": {"total": 9, "limit": 1, "offset": 0}, "results": [' + payment + b"]}"
    async with answering(Response(page), http) as client:
        with pytest.raises(Retryable, match="about something else"):
            async for _ in client.all_payments(PaymentSearch(), limit=1):
                pass


async def test_an_answer_without_end_is_not_read(http: httpx.AsyncClient) -> None:
    async with answering(Response(b" " * (MOST_BYTES + 1)), http) as client:
        with pytest.raises(Retryable, match="did not answer in full"):
            await client.get_payment("1")


async def test_a_redirect_is_not_followed(http: httpx.AsyncClient, mp: MercadoPago) -> None:
    async with answering(RedirectResponse(f"{mp.url}/v1/payments/1"), http) as client:
        with pytest.raises(Retryable, match="answered 307"):
            await client.get_payment("1")
    assert mp.ledger.entries == []


async def test_an_error_that_is_no_json_is_still_sorted(http: httpx.AsyncClient) -> None:
    async with answering(Response("s3cret-token rejected", 400), http) as client:
        with pytest.raises(Permanent) as caught:
            await client.get_payment("1")
    assert (str(caught.value), caught.value.codes) == ("mercadopago answered 400", ())


async def test_errors_never_tell_a_token_a_key_or_what_was_sent(http: httpx.AsyncClient) -> None:
    echo = b"""{"message": "s3cret-token", "error": "s3cret-token is wrong, ana@example.com",
        "cause": [{"code": "refund-key-1 used", "description": "s3cret-token"}]}"""
    async with answering(Response(echo, 400), http) as client:
        with pytest.raises(Permanent) as caught:
            await client.refund("1", key="refund-key-1", amount_centavos=4242)
    told = "".join(traceback.format_exception(caught.value)) + repr(vars(caught.value))
    told = told.replace('key="refund-key-1", amount_centavos=4242', "")  # this file's own line
    for secret in ("s3cret-token", "ana@example.com", "refund-key-1", "42.42"):
        assert secret not in told
