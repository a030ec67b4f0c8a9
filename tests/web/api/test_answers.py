"""What the API answers to requests that no route, or no caller, may send."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import httpx
import pytest

from faena import Faena
from faena.errors import ConfigError
from faena.web.access.access import Access
from faena.web.access.account import Account, Accounts
from faena.web.access.role import Role
from faena.web.application import Dashboard, dashboard
from faena.web.callers import Callers
from tests.web.api.busy import Busy
from tests.web.api.conftest import BASE, Client


async def test_an_unknown_route_is_a_problem_for_programs_and_a_page_for_people(
    client: Client,
) -> None:
    asking = await client(Role.VIEWER)
    answer = await asking.get("/api/nowhere")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "not_found"
    page = await asking.get("/nowhere")
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")


async def test_a_method_that_a_route_does_not_take_is_named(client: Client) -> None:
    asking = await client(Role.VIEWER)
    answer = await asking.delete("/api/queues/mail/pause")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json()["code"] == "method"
    answer = await asking.put("/api/queues/mail/redrives")
    assert answer.headers["allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize("says_its_size", [True, False])
async def test_a_body_that_is_too_large_is_refused(
    app: Faena, client: Client, says_its_size: bool
) -> None:
    app.queue("mail")
    asking = await client(Role.OPERATOR)
    large = b'{"reason": "' + b"x" * 300_000 + b'"}'

    async def parts() -> AsyncIterator[bytes]:
        for at in range(0, len(large), 50_000):
            yield large[at : at + 50_000]

    body = large if says_its_size else parts()
    answer = await asking.post("/api/queues/mail/pause", content=body)
    assert answer.status_code == 413
    assert answer.json()["code"] == "too_large"
    assert (await app.queues["mail"].overview()).holds == ()


@pytest.mark.parametrize("size", ["soon", "-1", "9" * 40])
async def test_a_size_that_makes_no_sense_breaks_nothing(
    app: Faena, client: Client, size: str
) -> None:
    app.queue("mail")
    asking = await client(Role.OPERATOR)
    headers = {"content-length": size}
    answer = await asking.post("/api/queues/mail/pause", content=b"{}", headers=headers)
    assert answer.status_code == 200


async def test_a_body_that_is_no_json_is_refused_in_words(app: Faena, client: Client) -> None:
    app.queue("mail")
    asking = await client(Role.OPERATOR)
    for body in (b"{", b"[]", b'{"reason": 7}', b'{"whose": "x"}', b"\xff", b"[" * 20_000):
        answer = await asking.post("/api/queues/mail/pause", content=body)
        assert answer.status_code == 422, body[:20]
        assert answer.headers["content-type"] == "application/problem+json"


async def test_a_caller_who_asks_too_often_is_told_when_to_come_again(
    app: Faena, accounts: Accounts
) -> None:
    served = dashboard(app, access=Access(), api_rate="3/h")
    _, token = await accounts.add_token(Account(name="eager", role=Role.VIEWER))
    _, other = await accounts.add_token(Account(name="calm", role=Role.VIEWER))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url=BASE) as client:
        eager = {"authorization": f"Bearer {token}"}
        seen = [(await client.get("/api/me", headers=eager)).status_code for _ in range(4)]
        assert seen == [200, 200, 200, 429]
        answer = await client.get("/api/me", headers=eager)
        assert 600 < int(answer.headers["retry-after"]) <= 1200
        assert answer.json()["code"] == "too_many"
        calm = {"authorization": f"Bearer {other}"}
        assert (await client.get("/api/me", headers=calm)).status_code == 200
        strangers = [(await client.get("/api/me")).status_code for _ in range(4)]
        assert strangers == [401, 401, 401, 429]


def test_requests_come_back_with_time() -> None:
    now = 0.0
    callers = Callers("2/s", lambda: now)
    assert [callers.wait_s("a") for _ in range(3)] == [0, 0, 0.5]
    now = 0.5
    assert [callers.wait_s("a") for _ in range(2)] == [0, 0.5]
    now = 1e9
    assert [callers.wait_s("a") for _ in range(3)] == [0, 0, 0.5]


def test_a_rate_that_makes_no_sense_is_refused(app: Faena) -> None:
    with pytest.raises(ConfigError):
        dashboard(app, access=Access(), api_rate="often")
    with pytest.raises(ConfigError, match="api_rate"):
        dashboard(app, access=Access(), api_rate=7)  # pyright: ignore[reportArgumentType]


async def test_the_api_can_be_mounted_alone(
    served: Dashboard, accounts: Accounts, busy: Busy
) -> None:
    _, token = await accounts.add_token(Account(name="ci", role=Role.VIEWER))
    headers = {"authorization": f"Bearer {token}"}
    transport = httpx.ASGITransport(served.api)
    async with httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers) as client:
        assert (await client.get("/queues")).json()["items"][0]["queue"] == "mail"
        told = (await client.get("/openapi.json")).json()
        assert "/queues/{queue}/pause" in told["paths"]
        answer = await client.get("/nowhere")
        assert answer.headers["content-type"] == "application/problem+json"
        assert (await client.get("/sign-in")).status_code == 404


async def test_events_are_read_from_where_a_reader_left_off(busy: Busy, client: Client) -> None:
    asking = await client(Role.VIEWER)
    first = await asking.get("/api/events?since=start&limit=2&queue=mail")
    assert first.headers["content-type"].startswith("text/event-stream")
    told = _events(first.text)
    assert len(told) == 2
    again = await asking.get(
        "/api/events?limit=1&queue=mail", headers={"last-event-id": told[0]["id"]}
    )
    assert _events(again.text)[0]["data"] == told[1]["data"]
    dead = await asking.get("/api/events?since=start&limit=1&kind=dead")
    (one,) = _events(dead.text)
    assert (one["event"], json.loads(one["data"])["job"]) == ("dead", "dead-1")


async def test_a_caller_reads_a_bounded_number_of_streams(
    served: Dashboard, busy: Busy, client: Client
) -> None:
    asking = await client(Role.VIEWER)
    callers = (await served.site()).callers
    name = (await asking.get("/api/me")).json()["name"]
    assert sum(callers.begin_stream(name) for _ in range(100)) == 20
    answer = await asking.get("/api/events?since=start&limit=1")
    assert answer.status_code == 429
    callers.end_stream(name)
    assert (await asking.get("/api/events?since=start&limit=1")).status_code == 200
    assert (await asking.get("/api/events?since=start&limit=1")).status_code == 200


async def test_metrics_are_answered_for_prometheus(busy: Busy, client: Client) -> None:
    asking = await client(Role.VIEWER)
    page = await asking.get("/api/metrics")
    assert page.headers["content-type"].startswith("text/plain")
    assert "faena_" in page.text


def _events(text: str) -> list[dict[str, str]]:
    parts = [part for part in text.split("\n\n") if part.startswith("id: ")]
    return [dict(line.split(": ", 1) for line in part.split("\n")) for part in parts]
