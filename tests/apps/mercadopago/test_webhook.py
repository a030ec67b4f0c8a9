"""A notification counts if MercadoPago signed it in the last five minutes; nothing else does."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from apps.providers.mercadopago import Notification, Settings, WebhookRefused, read_notification
from apps.sandbox.mercadopago import Forgery, MercadoPago, Payment
from apps.sandbox.stand_in import serving
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.apps.mercadopago.conftest import Clock

NOW = 1_794_830_400
SETTINGS = Settings(access_token="token", webhook_secret="s3cret")


def sign(manifest: str, secret: str = "s3cret") -> str:
    return hmac.new(secret.encode(), manifest.encode(), hashlib.sha256).hexdigest()


def read(
    manifest: str | None = None,
    *,
    ts: str = str(NOW),
    data_id: str | None = "1001",
    request_id: str | None = "req-1",
    signature: str | None = None,
    body: Any = None,
    settings: Settings = SETTINGS,
    now: float = NOW,
) -> Notification:
    """Read one that is right but for what is given."""
    manifest = f"id:1001;request-id:req-1;ts:{ts};" if manifest is None else manifest
    headers = {"X-Signature": signature or f"ts={ts},v1={sign(manifest)}"}
    if request_id is not None:
        headers["X-Request-Id"] = request_id
    wanted = {"id": 77, "type": "payment", "action": "payment.updated", "data": {"id": "1001"}}
    raw = body if isinstance(body, bytes) else json.dumps(wanted | (body or {})).encode()
    query = {} if data_id is None else {"data.id": data_id, "type": "payment"}
    return read_notification(settings, query=query, headers=headers, body=raw, now=now)


def test_a_genuine_notification_is_read() -> None:
    assert read(body={"live_mode": True}) == Notification(
        id="77",
        type="payment",
        action="payment.updated",
        data_id="1001",
        is_live=True,
        request_id="req-1",
    )


def test_an_instant_in_milliseconds_counts_as_well() -> None:
    assert read(ts=f"{NOW}123").id == "77"


@pytest.mark.parametrize("unit", [1, 1000])
@pytest.mark.parametrize(
    ("age", "is_taken"), [(300, True), (-300, True), (301, False), (-301, False)]
)
def test_an_instant_may_be_five_minutes_away(unit: int, age: int, is_taken: bool) -> None:
    ts = str((NOW - age) * unit)
    if is_taken:
        assert read(ts=ts).id == "77"
    else:
        with pytest.raises(WebhookRefused, match="older than 300 s"):
            read(ts=ts)


@pytest.mark.parametrize("signed", ["Pre-AB12", "pre-ab12"])
def test_an_id_may_be_signed_as_it_is_or_in_lower_case(signed: str) -> None:
    found = read(
        f"id:{signed};request-id:req-1;ts:{NOW};",
        data_id="Pre-AB12",
        body={"data": {"id": "Pre-AB12"}},
    )
    assert found.data_id == "Pre-AB12"


def test_pairs_without_a_value_are_not_signed() -> None:
    assert read(f"request-id:req-1;ts:{NOW};", data_id=None).data_id == "1001"
    assert read(f"id:1001;ts:{NOW};", request_id=None).request_id == ""


@pytest.mark.parametrize(
    "manifest",
    [
        f"id:1002;request-id:req-1;ts:{NOW};",
        f"id:1001;request-id:req-2;ts:{NOW};",
        f"id:1001;request-id:req-1;ts:{NOW + 1};",
        f"id:1001;request-id:req-1;ts:{NOW}",
        f"ts:{NOW};",
        "",
    ],
)
def test_what_was_not_signed_is_refused(manifest: str) -> None:
    with pytest.raises(WebhookRefused, match="signature of a notification is wrong"):
        read(manifest)


@pytest.mark.parametrize(
    "header",
    [
        " ",
        "ts=1",
        f"v1={'0' * 64}",
        f"ts=,v1={'0' * 64}",
        f"ts={NOW},v1=",
        f"ts=-{NOW},v1=00",
        f"ts={NOW}1,v1=00",
        f"ts=\u0661{NOW},v1=00",
        f"ts={NOW},ts={NOW},v1=00",
        "a" * 10_000,
    ],
)
def test_a_malformed_signature_is_refused(header: str) -> None:
    with pytest.raises(WebhookRefused, match="missing or malformed"):
        read(signature=header)


@pytest.mark.parametrize("digest", ["é" * 64, "0" * 63, "\udcff", sign("x").upper()])
def test_an_odd_digest_is_refused(digest: str) -> None:
    with pytest.raises(WebhookRefused, match="is wrong"):
        read(signature=f"ts={NOW},v1={digest}")


def test_another_secret_is_refused_and_none_accepts_nothing() -> None:
    with pytest.raises(WebhookRefused, match="is wrong"):
        read(settings=Settings(access_token="t", webhook_secret="other"))
    signature = f"ts={NOW},v1={sign(f'id:1001;request-id:req-1;ts:{NOW};', '')}"
    with pytest.raises(WebhookRefused, match="no webhook_secret is set"):
        read(settings=Settings(access_token="t"), signature=signature)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b"[" * 60_000,
        b" " * 70_000,
        {"id": None},
        {"id": [1]},
        {"type": ""},
        {"type": 1.5},
        {"data": "x"},
        {"data": {"id": {"$ne": 1}}},
        {"live_mode": "perhaps"},
    ],
)
def test_a_body_that_cannot_be_read_is_refused(body: Any) -> None:
    with pytest.raises(WebhookRefused, match=r"cannot be read|at most"):
        read(body=body)


def test_a_body_about_something_else_than_what_was_signed_is_refused() -> None:
    with pytest.raises(WebhookRefused, match="about something else"):
        read(body={"data": {"id": "1002"}})


@given(st.text(max_size=80), st.binary(max_size=80))
def test_whatever_comes_is_refused_and_nothing_else_is_raised(header: str, body: bytes) -> None:
    with pytest.raises(WebhookRefused):
        read(signature=header or "x", body=body)


class Inbox:
    """The program's end: it takes what is genuine, once."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self.taken: list[Notification] = []
        self.url = ""

    async def receive(self, request: Request) -> Response:
        try:
            found = read_notification(
                self._settings,
                query=request.query_params,
                headers=request.headers,
                body=await request.body(),
                now=self._clock.at.timestamp(),
            )
        except WebhookRefused:
            return Response(status_code=401)
        if found.id not in {one.id for one in self.taken}:
            self.taken.append(found)
        return Response()


@pytest.fixture
async def inbox(settings: Settings, clock: Clock) -> AsyncIterator[Inbox]:
    inbox = Inbox(settings, clock)
    async with serving(Starlette(routes=[Route("/mp", inbox.receive, methods=["POST"])])) as url:
        inbox.url = f"{url}/mp"
        yield inbox


async def test_what_the_service_sends_is_taken(
    mp: MercadoPago, inbox: Inbox, paid: Payment
) -> None:
    sent = await mp.notify(inbox.url, paid.id, unit="ms", is_id_lowered=True)
    (found,) = inbox.taken
    assert (found.id, found.data_id) == (str(sent.notification_id), str(paid.id))
    (entry,) = mp.ledger.of("notify", "ok")
    assert entry.subject == found.id
    assert entry.detail == {"status": 200, "forgery": None, "is_replay": False}


async def test_a_replay_has_the_same_id(mp: MercadoPago, inbox: Inbox, paid: Payment) -> None:
    sent = await mp.notify(inbox.url, paid.id)
    assert (await mp.replay(sent)).status == 200
    again = await mp.notify(inbox.url, paid.id, notification_id=sent.notification_id)
    assert (again.status, len(inbox.taken)) == (200, 1)
    assert [one.detail["is_replay"] for one in mp.ledger.of("notify")] == [False, True, False]


async def test_a_replay_of_long_ago_is_refused(
    mp: MercadoPago, inbox: Inbox, paid: Payment, clock: Clock
) -> None:
    sent = await mp.notify(inbox.url, paid.id)
    clock.move(seconds=301)
    assert (await mp.replay(sent)).status == 401


@pytest.mark.parametrize("forgery", ["signature", "secret", "unsigned", "old", "future", "body"])
async def test_a_forged_one_is_refused(
    mp: MercadoPago, inbox: Inbox, paid: Payment, forgery: Forgery
) -> None:
    assert (await mp.notify(inbox.url, paid.id, forgery=forgery)).status == 401
    assert inbox.taken == []
    (entry,) = mp.ledger.of("notify", "refused")
    assert entry.detail["forgery"] == forgery


async def test_a_receiver_that_is_not_there_is_noted(mp: MercadoPago, paid: Payment) -> None:
    async with serving(Starlette()) as url:
        pass
    assert (await mp.notify(f"{url}/mp", paid.id)).status is None
    assert len(mp.ledger.of("notify", "unanswered")) == 1
