"""What errors mean, and that they keep the key and the conversation to themselves."""

from __future__ import annotations

import asyncio
import dataclasses
import gzip
import traceback
from collections.abc import AsyncIterator

import httpx
import pytest
from apps.providers.openai import (
    Client,
    Message,
    OpenAIError,
    Permanent,
    RateLimited,
    Retryable,
    Settings,
    Unfit,
    UnknownOutcome,
)
from apps.sandbox.openai import OpenAI, spoken
from apps.sandbox.stand_in import serving
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from apps.sandbox import Fault
from tests._support.eventually import eventually

HELLO = [Message("user", "mi clave es 1234")]


async def failed(client: Client) -> OpenAIError:
    with pytest.raises(OpenAIError) as caught:
        await client.chat(HELLO)
    return caught.value


@pytest.mark.parametrize("status", [408, 409, 500, 502, 503])
async def test_an_answer_of_a_service_in_trouble_can_be_asked_for_again(
    client: Client, service: OpenAI, status: int
) -> None:
    service.faults.add(Fault(kind="status", status=status))
    error = await failed(client)
    assert type(error) is Retryable
    assert str(error) == f"openai answered with status {status}"
    assert len(service.ledger.entries) == 1  # the SDK does not try again


async def test_a_rate_limit_says_how_long_to_wait(client: Client, service: OpenAI) -> None:
    service.faults.add(Fault(kind="status", status=429, seconds=7))
    error = await failed(client)
    assert isinstance(error, RateLimited)
    assert (error.retry_after, error.code) == ("7", "rate_limit_exceeded")


async def test_a_rate_limit_in_milliseconds_is_exact(client: Client, service: OpenAI) -> None:
    service.faults.add(Fault(kind="status", status=429, seconds=1))
    service.retry_after_ms = 250
    error = await failed(client)
    assert isinstance(error, RateLimited)
    assert error.retry_after == "0.25"


async def test_a_used_up_quota_is_permanent(client: Client, service: OpenAI) -> None:
    service.is_quota_used_up = True
    error = await failed(client)
    assert type(error) is Permanent
    assert error.code == "insufficient_quota"
    with pytest.raises(Permanent, match="insufficient_quota"):
        await client.transcribe(spoken("hola"))


async def test_wrong_requests_are_permanent(
    settings: Settings, http: httpx.AsyncClient, client: Client
) -> None:
    with pytest.raises(Permanent, match=r"status 404 \(model_not_found\)"):
        await client.chat(HELLO, model="gpt-9")
    with pytest.raises(Permanent, match="status 400"):
        await client.chat([])
    with pytest.raises(Permanent, match="status 400"):
        await client.transcribe(b"no audio at all")
    stranger = Client(dataclasses.replace(settings, key="sk-of-somebody-else"), http)
    with pytest.raises(Permanent, match=r"status 401 \(invalid_api_key\)"):
        await stranger.chat(HELLO)


@pytest.mark.parametrize("kind", ["cut", "lost"])
async def test_a_lost_connection_leaves_the_outcome_unknown(
    client: Client, service: OpenAI, kind: str
) -> None:
    service.faults.add(Fault(kind=kind))
    error = await failed(client)
    assert type(error) is UnknownOutcome
    assert str(error) == "the connection to openai was lost"


async def test_a_late_answer_leaves_the_outcome_unknown(
    settings: Settings, http: httpx.AsyncClient, service: OpenAI
) -> None:
    service.faults.add(Fault(kind="slow", seconds=0.5))
    before = len(asyncio.all_tasks())
    error = await failed(Client(dataclasses.replace(settings, timeout_s=0.2), http))
    assert type(error) is UnknownOutcome
    assert str(error) == "openai did not answer in time"
    await eventually(lambda: len(asyncio.all_tasks()) == before)  # the service gives up, too


async def test_a_service_that_cannot_be_reached_has_done_nothing(
    settings: Settings, http: httpx.AsyncClient
) -> None:
    with_nobody = dataclasses.replace(settings, base_url="http://127.0.0.1:9/v1")
    assert type(await failed(Client(with_nobody, http))) is Retryable


async def test_no_error_tells_the_key_or_the_conversation(
    settings: Settings, http: httpx.AsyncClient, service: OpenAI
) -> None:
    stranger = Client(dataclasses.replace(settings, key="sk-of-somebody-Zq9X"), http)
    service.say("clave", "1234, dijiste")
    service.faults.add(Fault(kind="status", status=500, times=1))
    service.faults.add(Fault(kind="cut", every=2, times=1))
    for _ in range(3):
        error = await failed(stranger)
        shown = "".join(traceback.format_exception(error)) + repr(vars(error))
        for secret in ("somebody", "Zq9X", "1234"):  # OpenAI's own words show the end of a key
            assert secret not in shown


def endless() -> StreamingResponse:
    async def spaces() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 65536
            await asyncio.sleep(0)  # a client that has gone is noticed

    return StreamingResponse(spaces(), media_type="application/json")


GOOD = b'{"usage":{"prompt_tokens":1,"completion_tokens":1},"choices":[{"message":%s}]}'
ODD = {
    "html": Response("<html>", media_type="text/html"),
    "empty": Response(b""),
    "a list": Response(b"[]"),
    "no choices": Response(b'{"usage":{"prompt_tokens":1,"completion_tokens":1},"choices":[]}'),
    "negative tokens": Response(GOOD.replace(b":1", b":-1") % b'{"content":"hola"}'),
    "deep": Response(b"[" * 100_000),
    "not utf-8": Response(GOOD % b'{"content":"\xff"}'),
    "endless": endless(),
    "too large": Response(GOOD % b'{"content":"hola"}' + b" " * 2**23),
    "a bomb": Response(gzip.compress(bytes(2**25)), headers={"content-encoding": "gzip"}),
}


@pytest.mark.parametrize("what", ODD)
async def test_an_answer_that_cannot_be_read_leaves_the_outcome_unknown(
    what: str, http: httpx.AsyncClient
) -> None:
    async with serving(answering(ODD[what])) as url, asyncio.timeout(30):
        error = await failed(Client(Settings(key="k", base_url=url), http))
    assert type(error) is UnknownOutcome


async def test_a_model_that_declines_is_permanent_and_paid(http: httpx.AsyncClient) -> None:
    declined = Response(GOOD % b'{"refusal":"I cannot help with that."}')
    async with serving(answering(declined)) as url:
        error = await failed(Client(Settings(key="k", base_url=url), http))
    assert type(error) is Permanent
    assert error.items == {"gpt-4-turbo.input": 1, "gpt-4-turbo.output": 1}


async def test_an_empty_answer_is_unfit(http: httpx.AsyncClient) -> None:
    async with serving(answering(Response(GOOD % b"{}"))) as url:
        assert type(await failed(Client(Settings(key="k", base_url=url), http))) is Unfit


async def test_the_key_does_not_follow_a_redirect(http: httpx.AsyncClient) -> None:
    asked: list[str] = []

    async def elsewhere(request: Request) -> Response:
        asked.append(request.headers.get("authorization", ""))
        return Response(GOOD % b'{"content":"hola"}')

    app = Starlette(routes=[Route("/", elsewhere, methods=["GET", "POST"])])
    async with serving(app) as other:
        moved = Response(status_code=307, headers={"location": f"{other}/"})
        async with serving(answering(moved)) as url:
            following = httpx.AsyncClient(follow_redirects=True)
            async with following:
                error = await failed(Client(Settings(key="k", base_url=url), following))
    assert type(error) is Retryable
    assert asked == []


async def test_strange_codes_and_headers_are_left_out(http: httpx.AsyncClient) -> None:
    body = b'{"error":{"message":"m","type":{"a":1},"param":[],"code":"sk-1234 <b>"}}'
    odd = Response(body, 429, {"retry-after-ms": "-5e9"})
    async with serving(answering(odd)) as url:
        error = await failed(Client(Settings(key="k", base_url=url), http))
    assert isinstance(error, RateLimited)
    assert (error.code, error.retry_after) == (None, None)


def answering(response: Response) -> Starlette:
    """A service that always gives the same answer."""

    async def answer(_: Request) -> Response:
        return response

    return Starlette(routes=[Route("/{path:path}", answer, methods=["POST"])])
