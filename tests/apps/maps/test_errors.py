"""What Google's refusals mean, most of which come with HTTP 200."""

from __future__ import annotations

import asyncio
import dataclasses
import gzip
import traceback
from collections.abc import AsyncIterator

import httpx
import pytest
from apps.providers.maps import (
    Client,
    MapsError,
    NoRoute,
    Permanent,
    RateLimited,
    Retryable,
    Settings,
    UnknownOutcome,
    maps_upstream,
)
from apps.sandbox.maps import Maps
from apps.sandbox.stand_in import serving
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from apps.sandbox import Fault
from faena import Faena
from tests._support.eventually import eventually

HOME = "Belgrano 1450"


async def failed(client: Client) -> MapsError:
    with pytest.raises(MapsError) as caught:
        await client.directions(HOME, "Quilmes")
    with pytest.raises(type(caught.value)):
        await client.distances([HOME], ["Quilmes"])
    return caught.value


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("OVER_QUERY_LIMIT", RateLimited),
        ("UNKNOWN_ERROR", Retryable),
        ("OVER_DAILY_LIMIT", Permanent),
        ("REQUEST_DENIED", Permanent),
        ("INVALID_REQUEST", Permanent),
        ("MAX_ELEMENTS_EXCEEDED", Permanent),
        ("SOMETHING_NEW", Permanent),
        ("ZERO_RESULTS", NoRoute),
        ("", UnknownOutcome),
        ("<script>", UnknownOutcome),
    ],
)
async def test_each_status_has_its_meaning(
    status: str, kind: type[MapsError], client: Client, service: Maps
) -> None:
    service.status = status
    assert type(await failed(client)) is kind


@pytest.mark.parametrize(
    ("status", "kind"),
    [(500, Retryable), (503, Retryable), (403, Permanent), (404, Permanent), (429, RateLimited)],
)
async def test_each_status_of_http_has_its_meaning(
    status: int, kind: type[MapsError], client: Client, service: Maps
) -> None:
    service.faults.add(Fault(kind="status", status=status, seconds=4))
    error = await failed(client)
    assert type(error) is kind
    if isinstance(error, RateLimited):
        assert error.retry_after == "4"


@pytest.mark.parametrize("kind", ["cut", "lost"])
async def test_without_an_answer_it_may_have_to_be_paid(
    kind: str, client: Client, service: Maps
) -> None:
    service.faults.add(Fault(kind=kind))
    assert type(await failed(client)) is UnknownOutcome


async def test_a_late_answer_may_have_to_be_paid(
    settings: Settings, http: httpx.AsyncClient, service: Maps
) -> None:
    service.faults.add(Fault(kind="slow", seconds=0.5))
    before = len(asyncio.all_tasks())
    error = await failed(Client(dataclasses.replace(settings, timeout_s=0.2), http))
    assert type(error) is UnknownOutcome
    await eventually(lambda: len(asyncio.all_tasks()) == before)


async def test_a_service_that_cannot_be_reached_costs_nothing(
    settings: Settings, http: httpx.AsyncClient
) -> None:
    nobody = dataclasses.replace(settings, base_url="http://127.0.0.1:9")
    assert type(await failed(Client(nobody, http))) is Retryable


async def test_no_error_tells_the_key_or_an_address(
    settings: Settings, http: httpx.AsyncClient, service: Maps
) -> None:
    stranger = Client(dataclasses.replace(settings, key="of-somebody-else"), http)
    service.faults.add(Fault(kind="status", status=500, times=2))
    service.faults.add(Fault(kind="cut", every=3, times=2))
    for _ in range(3):
        error = await failed_once(stranger)
        shown = "".join(traceback.format_exception(error)) + repr(vars(error))
        assert "somebody" not in shown
        assert "Belgrano" not in shown


async def failed_once(client: Client) -> MapsError:
    places = HOME, "Quilmes"
    with pytest.raises(MapsError) as caught:
        await client.directions(*places)
    return caught.value


def endless() -> StreamingResponse:
    async def spaces() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 65536
            await asyncio.sleep(0)  # a client that has gone is noticed

    return StreamingResponse(spaces())


ODD = {
    "html": Response("<html>"),
    "empty": Response(b""),
    "a list": Response(b"[]"),
    "deep": Response(b"[" * 100_000),
    "not utf-8": Response(b'{"status":"\xff"}'),
    "no routes": Response(b'{"status":"OK"}'),
    "a wrong type": Response(b'{"status":"OK","routes":{},"rows":{}}'),
    "endless": endless(),
    "too large": Response(b'{"status":"ZERO_RESULTS"}' + b" " * 2**22),
    "a bomb": Response(gzip.compress(bytes(2**24)), headers={"content-encoding": "gzip"}),
}


@pytest.mark.parametrize("what", ODD)
async def test_an_answer_that_cannot_be_read_may_have_to_be_paid(
    what: str, http: httpx.AsyncClient
) -> None:
    async def answer(_: Request) -> Response:
        return ODD[what]

    async with serving(Starlette(routes=[Route("/{path:path}", answer)])) as url:
        error = await failed(Client(Settings(key="k", base_url=url), http))
    assert type(error) is UnknownOutcome


def test_the_upstream_knows_what_errors_mean() -> None:
    maps = maps_upstream(Faena("shop"))
    for error, kind in (
        (Retryable("x"), "retryable"),
        (NoRoute("x"), "permanent"),
        (RateLimited("x", retry_after=None), "rate_limited"),
        (UnknownOutcome("x"), "unknown"),
    ):
        meaning = maps.sorts(error)
        assert meaning is not None
        assert meaning.kind == kind
