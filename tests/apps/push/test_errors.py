"""What errors of Firebase and of the token service mean."""

from __future__ import annotations

import asyncio
import dataclasses
import gzip
import traceback
from collections.abc import AsyncIterator

import httpx
import pytest
from apps.providers.push import (
    Client,
    Notice,
    Permanent,
    PushError,
    RateLimited,
    Retryable,
    Settings,
    UnknownOutcome,
    Unregistered,
    push_upstream,
)
from apps.sandbox.push import Push
from apps.sandbox.stand_in import serving
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from apps.sandbox import Fault
from faena import Faena
from tests._support.eventually import eventually


async def failed(client: Client, device: str = "x:y") -> PushError:
    with pytest.raises(PushError) as caught:
        await client.send(Notice(token=device, title="Hola", body="secreto"))
    return caught.value


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, RateLimited),
        (503, Retryable),
        (500, UnknownOutcome),
        (502, UnknownOutcome),
        (400, Permanent),
        (403, Permanent),
    ],
)
async def test_each_status_has_its_meaning(
    status: int, kind: type[PushError], client: Client, service: Push
) -> None:
    service.faults.add(Fault(kind="status", status=status, seconds=7, operation="send"))
    error = await failed(client)
    assert type(error) is kind
    if isinstance(error, RateLimited):
        assert (error.retry_after, error.code) == ("7", "QUOTA_EXCEEDED")


@pytest.mark.parametrize("kind", ["cut", "lost"])
async def test_a_lost_connection_leaves_the_outcome_unknown(
    kind: str, client: Client, service: Push
) -> None:
    service.faults.add(Fault(kind=kind, operation="send"))
    assert type(await failed(client, service.register())) is UnknownOutcome
    assert len(service.messages) == (1 if kind == "lost" else 0)


async def test_an_answer_without_a_name_leaves_the_outcome_unknown(
    client: Client, service: Push
) -> None:
    service.faults.add(Fault(kind="wrong"))
    assert type(await failed(client, service.register())) is UnknownOutcome


@pytest.mark.parametrize(
    "fault",
    [
        Fault(kind="status", status=500),
        Fault(kind="status", status=429),
        Fault(kind="cut"),
        Fault(kind="lost"),
    ],
    ids=lambda fault: f"{fault.kind} {fault.status}",
)
async def test_without_a_token_nothing_was_sent(
    fault: Fault, client: Client, service: Push
) -> None:
    service.faults.add(dataclasses.replace(fault, operation="token"))
    assert type(await failed(client, service.register())) is Retryable
    assert service.ledger.of("send") == []


@pytest.mark.parametrize(("slow", "kind"), [("token", Retryable), ("send", UnknownOutcome)])
async def test_a_late_answer_means_what_was_asked(
    slow: str, kind: type[PushError], settings: Settings, http: httpx.AsyncClient, service: Push
) -> None:
    client = Client(dataclasses.replace(settings, timeout_s=1), http)
    await failed(client)  # a token is at hand
    if slow == "token":
        service.expire_tokens()
    service.faults.add(Fault(kind="slow", seconds=1.5, operation=slow, times=1))
    before = len(asyncio.all_tasks())
    assert type(await failed(client, service.register())) is kind
    await eventually(lambda: len(asyncio.all_tasks()) == before)


async def test_a_service_that_cannot_be_reached_has_sent_nothing(
    settings: Settings, http: httpx.AsyncClient
) -> None:
    for nobody in ({"base_url": "http://127.0.0.1:9"}, {"token_url": "http://127.0.0.1:9/token"}):
        assert (
            type(await failed(Client(dataclasses.replace(settings, **nobody), http))) is Retryable
        )


async def test_no_error_tells_keys_tokens_or_notices(
    settings: Settings, http: httpx.AsyncClient, service: Push
) -> None:
    client, device = Client(settings, http), "device-that-is-unknown:APA91b" + "x" * 90
    for operation, kind in (("send", "cut"), ("token", "cut"), ("send", "status")):
        service.faults.add(Fault(kind=kind, operation=operation, times=1))
        error = await failed(client, device)
        shown = "".join(traceback.format_exception(error)) + repr(vars(error))
        for secret in ("PRIVATE", "ya29", "device-that", "assertion="):
            assert secret not in shown
        service.expire_tokens()
        service.faults.clear()


def endless() -> StreamingResponse:
    async def spaces() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 65536
            await asyncio.sleep(0)  # a client that has gone is noticed

    return StreamingResponse(spaces())


GRANTED = {"access_token": "t", "expires_in": 3599, "token_type": "Bearer"}
ODD = {
    "html": Response("<html>"),
    "empty": Response(b""),
    "a list": Response(b"[]"),
    "deep": Response(b"[" * 100_000),
    "not utf-8": Response(b'{"name":"\xff","access_token":"\xff"}'),
    "a wrong type": Response(b'{"name":7,"access_token":7,"expires_in":-1}'),
    "endless": endless(),
    "too large": Response(
        b'{"name":"n","access_token":"t","expires_in":9}' + b" " * 2**18,
    ),
    "a bomb": Response(gzip.compress(bytes(2**24)), headers={"content-encoding": "gzip"}),
}


@pytest.mark.parametrize("what", ODD)
async def test_what_cannot_be_read_is_no_answer(
    what: str, settings: Settings, http: httpx.AsyncClient
) -> None:
    async def token(request: Request) -> Response:
        return ODD[what] if request.url.path == "/odd" else JSONResponse(GRANTED)

    async def send(_: Request) -> Response:
        return ODD[what]

    routes = [
        Route("/v1/{path:path}", send, methods=["POST"]),
        Route("/{path}", token, methods=["POST"]),
    ]
    async with serving(Starlette(routes=routes)) as url:
        own = dataclasses.replace(settings, base_url=url, token_url=f"{url}/token")
        assert type(await failed(Client(own, http))) is UnknownOutcome
        odd = dataclasses.replace(own, token_url=f"{url}/odd")
        assert type(await failed(Client(odd, http))) is Retryable


async def test_apples_keys_are_not_ours_to_replace(
    settings: Settings, http: httpx.AsyncClient
) -> None:
    asked: list[str] = []

    async def token(_: Request) -> Response:
        asked.append("token")
        return JSONResponse(GRANTED)

    async def send(_: Request) -> Response:
        detail = {"@type": "x", "errorCode": "THIRD_PARTY_AUTH_ERROR"}
        return JSONResponse({"error": {"status": "UNAUTHENTICATED", "details": [detail]}}, 401)

    routes = [
        Route("/v1/{path:path}", send, methods=["POST"]),
        Route("/token", token, methods=["POST"]),
    ]
    async with serving(Starlette(routes=routes)) as url:
        own = dataclasses.replace(settings, base_url=url, token_url=f"{url}/token")
        error = await failed(Client(own, http))
    assert (type(error), error.code) == (Permanent, "THIRD_PARTY_AUTH_ERROR")
    assert asked == ["token"]


def test_the_upstream_knows_what_errors_mean() -> None:
    push = push_upstream(Faena("shop"))
    assert push.options.prices == ()
    for error, kind in (
        (Retryable("x"), "retryable"),
        (Unregistered("x"), "permanent"),
        (RateLimited("x", retry_after="3"), "rate_limited"),
        (UnknownOutcome("x"), "unknown"),
    ):
        meaning = push.sorts(error)
        assert meaning is not None
        assert meaning.kind == kind
