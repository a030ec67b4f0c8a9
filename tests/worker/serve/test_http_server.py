"""The HTTP server of workers: what it answers, and what hostile clients get."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from faena.worker.serve import http_server
from faena.worker.serve.http_server import HttpServer, Response, in_json
from faena.worker.serve.request import Request, prefers_openmetrics, read_request
from tests._support.eventually import eventually
from tests._support.probe import get, send


async def _answer(request: Request) -> Response:
    if request.path == "/fail":
        raise ValueError("no luck")
    if request.path == "/large":
        return Response(200, b"x" * 5_000_000, "text/plain")
    return in_json(200, {"path": request.path, "method": request.method})


@pytest.fixture
async def server() -> AsyncIterator[HttpServer]:
    server = HttpServer(_answer)
    yield server
    await server.close()
    await eventually(lambda: not server._connections)


@pytest.fixture
async def port(server: HttpServer) -> int:
    return await server.open("127.0.0.1", 0)


async def test_a_get_is_answered_with_a_length_and_is_not_stored(port: int) -> None:
    told = await get(port, "/health?verbose=1")
    assert (told.status, told.document) == (200, {"path": "/health", "method": "GET"})
    assert f"Content-Length: {len(told.body)}" in told.head
    assert "Cache-Control: no-store" in told.head


async def test_a_head_is_answered_without_a_body(port: int) -> None:
    told = await send(port, b"HEAD /ready HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert (told.status, told.body) == (200, b"")
    assert "Content-Length: 34" in told.head


async def test_a_connection_takes_many_requests_also_at_once(port: int) -> None:
    one = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
    last = b"GET /b HTTP/1.1\r\nConnection: close\r\n\r\n"
    told = await send(port, one * 50 + last)
    assert told.body.count(b"HTTP/1.1 200 OK") == 50
    assert told.body.endswith(b'{"path":"/b","method":"GET"}\n')


async def test_an_old_client_is_closed_after_its_answer(port: int) -> None:
    assert (await send(port, b"GET / HTTP/1.0\r\n\r\n")).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT"])
async def test_other_methods_are_refused_and_what_follows_is_not_read(
    port: int, method: str
) -> None:
    data = f"{method} / HTTP/1.1\r\nContent-Length: 27\r\n\r\nGET /b HTTP/1.1\r\n\r\n"
    told = await send(port, data.encode())
    assert told.status == 405
    assert "Allow: GET, HEAD" in told.head
    assert b"HTTP/1.1" not in told.body


async def test_the_body_of_a_get_is_no_request(port: int) -> None:
    data = b"GET /a HTTP/1.1\r\nContent-Length: 27\r\n\r\nGET /b HTTP/1.1\r\n\r\n"
    told = await send(port, data)
    assert (told.status, told.document["path"]) == (200, "/a")


async def test_a_request_that_fails_is_a_500_and_the_next_one_is_answered(port: int) -> None:
    assert (await get(port, "/fail")).status == 500
    assert (await get(port, "/")).status == 200


async def test_a_head_that_never_ends_is_refused(port: int) -> None:
    told = await send(port, b"GET / HTTP/1.1\r\nX: " + b"a" * 9_000)
    assert told.status == 431


HOSTILE = [
    *(b"\x00" * 100, b"\xff\xfe\r\n\r\n", b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/2.0\r\n\r\n"),
    *(b"get / HTTP/1.1\r\n\r\n", b"GET  / HTTP/1.1\r\n\r\n", b"GET /\x00 HTTP/1.1\r\n\r\n"),
    *(b"GET / HTTP/1.1\r\nA\r\n\r\n", b"GET / HTTP/1.1\r\nA : b\r\n\r\n"),
    *(b"GET / HTTP/1.1\r\n A: b\r\n\r\n", b"GET / HTTP/1.1\r\nA: \x00\r\n\r\n"),
    b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 65 + b"\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
]


@pytest.mark.parametrize("data", HOSTILE)
async def test_what_is_no_http_is_refused(port: int, data: bytes) -> None:
    told = await send(port, data + b"\r\n\r\n")
    assert told.status == 400
    assert (await get(port, "/")).status == 200


async def test_random_bytes_break_nothing(port: int, caplog: pytest.LogCaptureFixture) -> None:
    dice = random.Random(7)

    async def attack(number: int) -> None:
        data = dice.randbytes(dice.randrange(1, 20_000)) + b"\r\n\r\n" * dice.randrange(3)
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data if number % 2 else b"GET / HTTP/1.1\r\n" + data)
        await asyncio.sleep(0)
        writer.transport.abort() if number % 3 else writer.close()

    await asyncio.gather(*map(attack, range(100)))
    assert (await get(port, "/")).status == 200
    assert not [one for one in caplog.records if one.levelname == "ERROR"]


async def test_a_head_that_is_too_slow_and_a_silent_client_are_closed(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "_HEAD_S", 0.05)
    monkeypatch.setattr(http_server, "_IDLE_S", 0.05)
    assert (await send(port, b"GET / HT")).status == 0
    assert (await send(port, b"")).status == 0
    assert (await send(port, b"GET / HTTP/1.1\r\n\r\n")).status == 200


async def test_a_client_that_reads_nothing_is_closed(
    server: HttpServer, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "_UNREAD_S", 0.05)
    _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
    writer.write(b"GET /large HTTP/1.1\r\n\r\n")
    await eventually(lambda: server._connections)
    await eventually(lambda: not server._connections)
    writer.close()


async def test_more_connections_than_there_is_room_for_close_the_idlest_one(port: int) -> None:
    idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(300)]
    try:
        assert (await get(port, "/")).status == 200
        first, _ = idle[0]
        assert await first.read() == b""
    finally:
        for _, writer in idle:
            writer.close()


def test_only_a_well_formed_head_is_a_request() -> None:
    found = read_request(b"GET http://host:1/metrics?a=b HTTP/1.1\r\nAccept: a\r\nACCEPT: b;q=0.1")
    assert found == Request("GET", "/metrics", "a, b;q=0.1", is_last=False)
    assert read_request(b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked") == Request(
        "GET", "/", is_last=True
    )


@pytest.mark.parametrize(
    ("accept", "is_preferred"),
    [
        ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3,*/*;q=0.2", True),
        ("application/openmetrics-text", True),
        ("text/plain, application/openmetrics-text;q=0.5", False),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=high", False),
        ("*/*", False),
        ("", False),
    ],
)
def test_openmetrics_is_given_to_those_that_prefer_it(accept: str, is_preferred: bool) -> None:
    assert prefers_openmetrics(accept) is is_preferred
