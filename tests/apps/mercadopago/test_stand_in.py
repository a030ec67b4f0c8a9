"""The stand-in is as strict as MercadoPago, and its sums are right."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from apps.providers.mercadopago import Checkout
from apps.sandbox.mercadopago import Delivery, MercadoPago, Payment

from tests.apps.mercadopago.conftest import Clock

ITEM = {"title": "Visita", "quantity": 1, "unit_price": 10.5, "currency_id": "ARS"}


class Raw:
    """Requests as somebody writes them who has no client."""

    def __init__(self, mp: MercadoPago, http: httpx.AsyncClient) -> None:
        self._mp, self._http = mp, http

    async def __call__(self, method: str, path: str, **more: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {self._mp.access_token}", **more.pop("headers", {})}
        return await self._http.request(method, self._mp.url + path, headers=headers, **more)


@pytest.fixture
def raw(mp: MercadoPago, http: httpx.AsyncClient) -> Raw:
    return Raw(mp, http)


@pytest.mark.parametrize("header", [{}, {"authorization": ""}, {"authorization": "Bearer ñ"}])
async def test_a_wrong_token_is_refused(
    mp: MercadoPago, http: httpx.AsyncClient, header: dict[str, str]
) -> None:
    headers = {name: value.encode() for name, value in header.items()}
    response = await http.get(f"{mp.url}/v1/payments/1", headers=headers)
    assert response.status_code == 401
    assert response.json() == {
        "message": "invalid access token",
        "error": "unauthorized",
        "status": 401,
        "cause": [],
    }
    assert [one.outcome for one in mp.ledger.entries] == ["refused"]


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"items": []},
        {"items": "x"},
        {"items": [{}]},
        {"items": [{**ITEM, "title": ""}]},
        {"items": [{**ITEM, "title": "x" * 257}]},
        {"items": [{**ITEM, "quantity": 0}]},
        {"items": [{**ITEM, "quantity": 1.5}]},
        {"items": [{**ITEM, "quantity": True}]},
        {"items": [{**ITEM, "unit_price": "10"}]},
        {"items": [{**ITEM, "unit_price": 0}]},
        {"items": [{**ITEM, "unit_price": -1}]},
        {"items": [{**ITEM, "unit_price": 1.005}]},
        {"items": [{**ITEM, "currency_id": "XXX"}]},
        {"items": [{**ITEM, "price": 1}]},
        {"items": [ITEM], "externalReference": "x"},
        {"items": [ITEM], "external_reference": "x" * 257},
        {"items": [ITEM], "notification_url": "campo"},
        {"items": [ITEM], "back_urls": {"ok": "https://x.example"}},
        {"items": [ITEM], "back_urls": {"success": "x"}},
        {"items": [ITEM], "auto_return": "approved"},
        {"items": [ITEM], "auto_return": "often"},
        {"items": [ITEM], "expiration_date_to": "2026-12-01"},
        {"items": [ITEM], "expiration_date_to": "2026-13-01T00:00:00.000-03:00"},
    ],
)
async def test_a_preference_against_the_rules_is_refused(
    raw: Raw, mp: MercadoPago, wrong: dict[str, Any]
) -> None:
    response = await raw("POST", "/checkout/preferences", json=wrong)
    assert (response.status_code, response.json()["status"]) == (400, 400)
    assert mp.account.preferences == {}


@pytest.mark.parametrize(
    ("content", "kind"), [("{", "application/json"), ("{}", "text/plain"), ("", "application/json")]
)
async def test_what_is_not_json_is_refused(raw: Raw, content: str, kind: str) -> None:
    headers = {"content-type": kind}
    response = await raw("POST", "/checkout/preferences", content=content, headers=headers)
    assert response.status_code == 400


async def test_a_refund_needs_a_key(raw: Raw, paid: Payment) -> None:
    response = await raw("POST", f"/v1/payments/{paid.id}/refunds")
    assert response.status_code == 400
    assert response.json()["message"] == "Header X-Idempotency-Key can't be null"
    assert response.json()["cause"][0]["code"] == 4292
    assert paid.refunds == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"amount": 0}, 4040),
        ({"amount": -1}, 4040),
        ({"amount": "1"}, 4041),
        ({"amount": True}, 4041),
        ({"amount": 1.005}, None),
        ({"amount": 100.51}, None),
        ({"sum": 1}, None),
        ([1], None),
    ],
)
async def test_a_refund_against_the_rules_is_refused(
    raw: Raw, paid: Payment, body: Any, code: int | None
) -> None:
    headers = {"x-idempotency-key": "k"}
    response = await raw("POST", f"/v1/payments/{paid.id}/refunds", json=body, headers=headers)
    assert response.status_code == 400
    assert [one["code"] for one in response.json()["cause"]] == ([code] if code else [])
    assert paid.refunds == []


async def test_a_refused_refund_does_not_use_its_key(raw: Raw, paid: Payment) -> None:
    headers, path = {"x-idempotency-key": "k"}, f"/v1/payments/{paid.id}/refunds"
    assert (await raw("POST", path, json={"amount": 200}, headers=headers)).status_code == 400
    assert (await raw("POST", path, json={"amount": 2}, headers=headers)).status_code == 201


async def test_a_key_is_forgotten_after_a_day(raw: Raw, paid: Payment, clock: Clock) -> None:
    headers, path = {"x-idempotency-key": "k"}, f"/v1/payments/{paid.id}/refunds"
    assert (await raw("POST", path, json={"amount": 1}, headers=headers)).status_code == 201
    assert (await raw("POST", path, json={"amount": 2}, headers=headers)).status_code == 409
    clock.move(hours=24)
    assert (await raw("POST", path, json={"amount": 2}, headers=headers)).status_code == 201
    assert paid.refunded_centavos == 300


async def test_a_key_of_one_payment_is_a_conflict_for_another(
    raw: Raw, mp: MercadoPago, checkout: Checkout
) -> None:
    headers = {"x-idempotency-key": "k"}
    answers = [
        await raw("POST", f"/v1/payments/{mp.pay(checkout.id).id}/refunds", headers=headers)
        for _ in range(2)
    ]
    assert [one.status_code for one in answers] == [201, 409]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/payments/1",
        "/v1/payments/x",
        "/v1/payments/1/refunds",
        "/v1/chargebacks/1",
        "/checkout/preferences/1",
    ],
)
async def test_what_is_not_there_is_not_found(raw: Raw, path: str) -> None:
    assert (await raw("GET", path)).status_code == 404


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=101",
        "limit=x",
        "offset=-1",
        "status=paid",
        "range=date_paid",
        "begin_date=2026-01-01T00:00:00Z",
        "range=date_created&begin_date=yesterday",
        "range=date_created&begin_date=2026-01-01",
        "reference=1",
    ],
)
async def test_a_search_against_the_rules_is_refused(raw: Raw, query: str) -> None:
    assert (await raw("GET", f"/v1/payments/search?{query}")).status_code == 400


async def test_the_latest_come_first_if_asked_for(
    raw: Raw, mp: MercadoPago, checkout: Checkout
) -> None:
    made = [mp.pay(checkout.id).id for _ in range(2)]
    response = await raw("GET", "/v1/payments/search?sort=date_created&criteria=desc")
    assert [one["id"] for one in response.json()["results"]] == made[::-1]


def test_a_payment_has_only_statuses_that_there_are(mp: MercadoPago, paid: Payment) -> None:
    for status, detail in (("paid", None), ("approved", "expired"), ("refunded", None)):
        with pytest.raises(ValueError, match=r"status|cannot become"):
            mp.settle(paid.id, status, detail)
    assert (paid.status, paid.status_detail) == ("approved", "accredited")


def test_a_payment_goes_through_mediation_to_a_chargeback(mp: MercadoPago, paid: Payment) -> None:
    mp.settle(paid.id, "in_mediation")
    mp.charge_back(paid.id)
    mp.settle(paid.id, "charged_back", "reimbursed")
    assert (paid.status, paid.status_detail) == ("charged_back", "reimbursed")
    with pytest.raises(ValueError, match="cannot become approved"):
        mp.settle(paid.id, "approved")


async def test_notifications_go_to_this_machine_only(mp: MercadoPago) -> None:
    delivery = Delivery(url="https://example.com/", headers={}, body=b"", notification_id=1)
    with pytest.raises(ValueError, match="must be on loopback"):
        await mp.replay(delivery)
