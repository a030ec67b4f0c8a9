"""What errors of Twilio mean, and that they keep token, number and text to themselves."""

from __future__ import annotations

import asyncio
import dataclasses
import gzip
import traceback
from collections.abc import AsyncIterator

import httpx
import pytest
from apps.providers.sms import (
    Client,
    Permanent,
    RateLimited,
    Retryable,
    Settings,
    SmsError,
    UnknownOutcome,
)
from apps.sandbox.sms import Twilio
from apps.sandbox.stand_in import serving
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from apps.sandbox import Fault
from tests._support.eventually import eventually

ANA = "+5491155550001"
SID = "SM" + "0" * 32


async def failed(client: Client) -> SmsError:
    with pytest.raises(SmsError) as caught:
        await client.send(ANA, "palabra")
    return caught.value


@pytest.mark.parametrize("kind", ["cut", "lost"])
async def test_a_lost_connection_leaves_the_outcome_unknown(
    client: Client, service: Twilio, kind: str
) -> None:
    service.faults.add(Fault(kind=kind, operation="send"))
    assert type(await failed(client)) is UnknownOutcome
    assert len(service.messages) == (1 if kind == "lost" else 0)


@pytest.mark.parametrize("status", [500, 502, 503])
async def test_trouble_at_twilio_leaves_the_outcome_unknown(
    client: Client, service: Twilio, status: int
) -> None:
    service.faults.add(Fault(kind="status", status=status))
    assert type(await failed(client)) is UnknownOutcome


async def test_a_question_can_always_be_asked_again(client: Client, service: Twilio) -> None:
    for fault in (Fault(kind="status", status=500, times=1), Fault(kind="cut", times=1)):
        service.faults.add(fault)
        with pytest.raises(Retryable):
            await client.get(SID)
    with pytest.raises(Permanent, match=r"status 404 \(code 20404\)"):
        await client.get(SID)


async def test_a_rate_limit_has_sent_nothing(client: Client, service: Twilio) -> None:
    service.faults.add(Fault(kind="status", status=429, seconds=3))
    error = await failed(client)
    assert isinstance(error, RateLimited)
    assert (error.retry_after, error.code) == ("3", 20429)
    assert service.messages == {}


async def test_a_late_answer_leaves_the_outcome_unknown(
    settings: Settings, http: httpx.AsyncClient, service: Twilio
) -> None:
    service.faults.add(Fault(kind="slow", seconds=0.5))
    before = len(asyncio.all_tasks())
    error = await failed(Client(dataclasses.replace(settings, timeout_s=0.2), http))
    assert type(error) is UnknownOutcome
    await eventually(lambda: len(asyncio.all_tasks()) == before)


async def test_a_service_that_cannot_be_reached_has_sent_nothing(
    settings: Settings, http: httpx.AsyncClient
) -> None:
    nobody = dataclasses.replace(settings, base_url="http://127.0.0.1:9")
    assert type(await failed(Client(nobody, http))) is Retryable


async def test_no_error_tells_token_number_or_text(
    settings: Settings, http: httpx.AsyncClient, service: Twilio
) -> None:
    stranger = Client(dataclasses.replace(settings, auth_token="of-somebody-else"), http)
    service.faults.add(Fault(kind="status", status=500, times=1))
    service.faults.add(Fault(kind="cut", every=2, times=1))
    for _ in range(3):
        error = await failed(stranger)
        shown = "".join(traceback.format_exception(error)) + repr(vars(error))
        for secret in ("somebody", ANA, "palabra\n"):
            assert secret not in shown
    assert type(error) is Permanent
    assert error.code == 20003


def endless() -> StreamingResponse:
    async def spaces() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 65536
            await asyncio.sleep(0)  # a client that has gone is noticed

    return StreamingResponse(spaces(), 201)


GOOD = b'{"sid":"SM1","status":"queued","to":"+1","date_created":"Wed, 18 Nov 2026 15:00:00 +0000"}'
ODD = {
    "html": Response("<html>", 201),
    "empty": Response(b"", 201),
    "a list": Response(b"[]", 201),
    "deep": Response(b"[" * 100_000, 201),
    "not utf-8": Response(b'{"sid":"\xff"}', 201),
    "no date": Response(b'{"sid":"SM1","status":"queued","to":"+1","date_created":"soon"}', 201),
    "endless": endless(),
    "too large": Response(GOOD + b" " * 2**20, 201),
    "a bomb": Response(gzip.compress(bytes(2**24)), 201, {"content-encoding": "gzip"}),
}


@pytest.mark.parametrize("what", ODD)
async def test_an_answer_that_cannot_be_read_leaves_the_outcome_unknown(
    what: str, settings: Settings, http: httpx.AsyncClient
) -> None:
    async with answering(ODD[what]) as url:
        error = await failed(Client(dataclasses.replace(settings, base_url=url), http))
    assert type(error) is UnknownOutcome


async def test_an_answer_of_the_usual_size_is_read(
    settings: Settings, http: httpx.AsyncClient
) -> None:
    async with answering(Response(GOOD, 201)) as url:
        message = await Client(dataclasses.replace(settings, base_url=url), http).send(ANA, "hola")
    assert (message.sid, message.segments) == ("SM1", 1)


async def test_a_redirect_is_not_followed(settings: Settings, http: httpx.AsyncClient) -> None:
    http.follow_redirects = True
    moved = Response(status_code=307, headers={"location": "http://127.0.0.1:9/"})
    async with answering(moved) as url:
        error = await failed(Client(dataclasses.replace(settings, base_url=url), http))
    assert type(error) is Retryable
    assert "307" in str(error)


def answering(response: Response):
    """A service that always gives the same answer."""

    async def answer(_: Request) -> Response:
        return response

    return serving(Starlette(routes=[Route("/{path:path}", answer, methods=["POST"])]))
