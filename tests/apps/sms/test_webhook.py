"""Callbacks are believed only if Twilio has signed them."""

from __future__ import annotations

import dataclasses
from urllib.parse import urlencode

import httpx
import pytest
from apps.providers.sms import (
    CallbackRefused,
    Client,
    Settings,
    StatusUpdate,
    read_status,
    sign,
)
from apps.sandbox.sms import Twilio
from apps.sandbox.stand_in import serving
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

ANA = "+5491155550001"
URL = "https://campo.example/hooks/sms?org=7"
SETTINGS = Settings(account_sid="AC" + "0" * 32, auth_token="12345", sender="+15005550006")
FIELDS = {"MessageSid": "SM1", "MessageStatus": "delivered", "To": ANA, "Body": "ñ & =", "A": ""}


def read(
    fields: dict[str, str] = FIELDS, *, url: str = URL, signature: str | None = None
) -> StatusUpdate:
    own = sign("12345", URL, fields.items())
    return read_status(
        SETTINGS, url=url, body=urlencode(fields).encode(), signature=signature or own
    )


def test_the_signature_is_that_of_twilios_own_example() -> None:
    fields = {
        "CallSid": "CA1234567890ABCDE",
        "Caller": "+14158675309",
        "Digits": "1234",
        "From": "+14158675309",
        "To": "+18005551212",
    }
    url = "https://mycompany.com/myapp.php?foo=1&bar=2"
    assert sign("12345", url, fields.items()) == "RSOYDt4T1cUTdK1PDd93/VVr8B8="


def test_a_signed_callback_is_read() -> None:
    update = read()
    assert update == StatusUpdate(sid="SM1", status="delivered", error_code=None, to=ANA)
    assert ANA not in repr(update)
    assert read({**FIELDS, "ErrorCode": "30003"}).error_code == 30003
    assert read({**FIELDS, "ErrorCode": "no"}).error_code is None


def test_the_port_may_be_part_of_the_address_or_not() -> None:
    assert read(url="https://campo.example:443/hooks/sms?org=7").sid == "SM1"
    with_port = sign("12345", "https://campo.example:443/hooks/sms?org=7", FIELDS.items())
    assert read(signature=with_port).sid == "SM1"
    with pytest.raises(CallbackRefused):
        read(url="https://campo.example/hooks/sms?org=8")


@pytest.mark.parametrize("signature", ["x", "ñ", sign("12346", URL, FIELDS.items())])
def test_a_wrong_signature_is_refused(signature: str) -> None:
    with pytest.raises(CallbackRefused, match="signature"):
        read(signature=signature)


def test_a_changed_field_is_refused() -> None:
    own = sign("12345", URL, FIELDS.items())
    for changed in ({"MessageStatus": "failed"}, {"To": "+1"}, {"New": "1"}):
        with pytest.raises(CallbackRefused, match="signature"):
            read({**FIELDS, **changed}, signature=own)


@pytest.mark.parametrize(
    "body",
    [b"\xff=1", b"a=%ff", b"no form", b"a=" + b"1" * 2**16, b"&".join([b"a=1"] * 101)],
)
def test_what_is_no_form_is_refused(body: bytes) -> None:
    with pytest.raises(CallbackRefused, match="a callback must"):
        read_status(SETTINGS, url=URL, body=body, signature="x")


def test_a_signed_callback_about_nothing_is_refused() -> None:
    for fields in ({"MessageSid": "SM1"}, {"MessageStatus": "sent", "MessageSid": ""}):
        with pytest.raises(CallbackRefused, match="must name a message"):
            read(fields)


async def test_the_stand_in_calls_back_as_twilio_does(
    service: Twilio, settings: Settings, http: httpx.AsyncClient
) -> None:
    updates: list[StatusUpdate] = []

    async def hook(request: Request) -> Response:
        signature, url = request.headers["x-twilio-signature"], str(request.url)
        body = await request.body()
        updates.append(read_status(settings, url=url, body=body, signature=signature))
        return Response(status_code=204)

    async with serving(Starlette(routes=[Route("/sms", hook, methods=["POST"])])) as own:
        told = dataclasses.replace(settings, status_callback=f"{own}/sms")
        client = Client(told, http)
        sid = (await client.send(ANA, "hola")).sid
        assert await service.tell(sid, "undelivered", error_code=30006) == 204
    assert updates == [StatusUpdate(sid=sid, status="undelivered", error_code=30006, to=ANA)]
    message = await client.get(sid)
    assert (message.has_failed, message.error_code) == (True, 30006)
