"""The HTTP interface to an app's tasks, mounted in Starlette and in FastAPI, over real requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from faena import Backpressure, Discard, Faena, Order
from faena.contrib.problem import problem_of
from faena.contrib.starlette import exception_handlers, router
from faena.errors import ConfigError, InternalError, JobConflict, Overloaded, StoreUnavailable
from tests._support.valkey import Server, free_port
from tests._support.working import obliterate

SECRET = "4111-1111-1111-1111"
TENANTS = {"Bearer a": "acme", "Bearer b": "bolt"}


class Mail(BaseModel):
    to: str
    copies: int = 1


class Shop:
    def __init__(self, url: str, namespace: str | None = None) -> None:
        self.app = Faena("shop", url, namespace=namespace)
        self.mail = self.app.queue("mail", payload_limit=200)
        self.full = self.app.queue("full", backpressure=Backpressure(soft=0, hard=1))
        self.kept = self.app.queue("kept", order=Order.TENANT)

        @self.mail.task
        async def send(mail: Mail) -> dict[str, str]:
            if mail.to == SECRET:
                raise Discard(f"no such card: {mail.to}")
            return {"sent": mail.to}

        @self.mail.task
        async def secret(_number: int) -> None: ...

        @self.full.task
        async def fill() -> None: ...

        @self.kept.task
        async def keep(_number: int) -> None: ...

        self.send, self.secret, self.fill, self.keep = send, secret, fill, keep

    def router(self, **options: Any) -> Any:
        tasks = [self.send, self.fill, self.keep]
        given: dict[str, Any] = {"tasks": tasks, "authorize": authorize, "tenant": tenant_of}
        return router(self.app, **(given | options))


def authorize(request: Request) -> bool:
    return request.headers.get("authorization") in TENANTS


async def tenant_of(request: Request) -> str:
    return TENANTS[request.headers["authorization"]]


def client_of(web: Any, who: str = "a") -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {who}"}
    transport = httpx.ASGITransport(web)
    return httpx.AsyncClient(transport=transport, base_url="http://shop", headers=headers)


@pytest.fixture
async def shop(valkey: Server, namespace: str) -> AsyncIterator[Shop]:
    shop = Shop(valkey.url, namespace)
    yield shop
    await obliterate(shop.app)


@pytest.fixture(params=["starlette", "fastapi"])
def web(request: pytest.FixtureRequest, shop: Shop) -> Any:
    if request.param == "starlette":
        return Starlette(routes=[Mount("/jobs", app=shop.router())])
    web = FastAPI()
    web.mount("/jobs", shop.router())
    return web


async def test_a_job_is_enqueued_and_looked_at(shop: Shop, web: Any) -> None:
    async with client_of(web) as client:
        answer = await client.post("/jobs/mail/send", json={"to": "ana"})
        assert (answer.status_code, answer.json()["status"]) == (202, "created")
        where = answer.headers["location"]
        assert where == f"/jobs/mail/{answer.json()['id']}"
        assert (await client.get(where)).json()["state"] == "ready"
        await shop.app.run_worker(until_empty=True)
        found = (await client.get(where)).json()
        assert (found["state"], found["result"]) == ("completed", {"sent": "ana"})
        assert (await client.get("/jobs/health")).json() == {"status": "ok"}


async def test_the_tenant_is_the_credentials_and_never_the_bodys(shop: Shop, web: Any) -> None:
    async with client_of(web) as client, client_of(web, "b") as other:
        body = {"to": "ana", "tenant": "bolt"}
        answer = await client.post("/jobs/mail/send?tenant=bolt", json=body)
        job = answer.json()["id"]
        view = await shop.send.handle(job).view()
        assert view is not None
        assert view.tenant == "acme"
        assert (await client.get(f"/jobs/mail/{job}")).status_code == 200
        assert (await other.get(f"/jobs/mail/{job}")).status_code == 404


async def test_a_router_without_tenants_shows_no_job_of_a_tenant(shop: Shop) -> None:
    theirs = await shop.send.enqueue(Mail(to="ana"), tenant="acme")
    own = await shop.send.enqueue(Mail(to="ana"))
    async with client_of(Starlette(routes=[Mount("/jobs", shop.router(tenant=None))])) as client:
        assert (await client.get(f"/jobs/mail/{theirs.id}")).status_code == 404
        assert (await client.get(f"/jobs/mail/{own.id}")).status_code == 200


async def test_a_repeated_request_is_the_same_job_for_its_caller_alone(
    shop: Shop, web: Any
) -> None:
    key = {"Idempotency-Key": "order-1"}
    async with client_of(web) as client, client_of(web, "b") as other:
        first = await client.post("/jobs/mail/send", json={"to": "ana"}, headers=key)
        again = await client.post("/jobs/mail/send", json={"to": "ana"}, headers=key)
        others = await other.post("/jobs/mail/send", json={"to": "bo"}, headers=key)
        changed = await client.post("/jobs/mail/send", json={"to": "cy"}, headers=key)
    assert (first.json()["status"], again.json()["status"]) == ("created", "duplicate")
    assert first.json()["id"] == again.json()["id"] != others.json()["id"]
    assert (others.status_code, changed.status_code) == (202, 409)
    assert changed.json()["code"] == "conflict"


@pytest.mark.parametrize("key", ["", "a b", "x" * 129])
async def test_a_bad_key_of_a_request_is_refused(shop: Shop, web: Any, key: str) -> None:
    headers = {"Idempotency-Key": key}
    async with client_of(web) as client:
        answer = await client.post("/jobs/mail/send", json={"to": "ana"}, headers=headers)
    assert (answer.status_code, answer.json()["field"]) == (422, "idempotency-key")
    assert (await shop.app.queues["mail"].overview()).counts["ready"] == 0


async def test_whoever_is_not_let_in_learns_nothing(shop: Shop, web: Any) -> None:
    async with client_of(web, "nobody") as client:
        for answer in (
            await client.post("/jobs/mail/send", json={"to": "ana"}),
            await client.post("/jobs/none/none", json={}),
            await client.get("/jobs/mail/any"),
        ):
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert (await shop.mail.counts())["ready"] == 0


async def test_only_the_named_tasks_are_reached(shop: Shop, web: Any) -> None:
    hidden = await shop.secret.enqueue(7, tenant="acme")
    async with client_of(web) as client:
        assert (await client.post("/jobs/mail/secret", json=7)).status_code == 404
        assert (await client.get(f"/jobs/mail/{hidden.id}")).status_code == 404
        assert (await client.get("/jobs/nowhere/x")).status_code == 404
        assert (await client.delete("/jobs/mail/x")).status_code == 405


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("mail/send", b'{"to": 7, "copies": "x"}', 422, "payload"),
        ("mail/send", b"{", 400, "malformed"),
        ("mail/send", b"", 400, "malformed"),
        ("mail/send", b'{"to": "' + b"x" * 300 + b'"}', 413, "too_large"),
        ("mail/send", b'{"to": "ana"}' + b" " * 188, 413, "too_large"),
        ("full/fill", b"7", 422, "payload"),
    ],
)
async def test_a_bad_body_is_refused_before_anything_is_written(
    shop: Shop, web: Any, path: str, body: bytes, status: int, code: str
) -> None:
    async with client_of(web) as client:
        answer = await client.post(f"/jobs/{path}", content=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
    assert (await shop.mail.counts())["ready"] == 0


async def test_bad_fields_are_named_and_their_values_are_not(web: Any) -> None:
    async with client_of(web) as client:
        answer = await client.post("/jobs/mail/send", json={"to": "ana", "copies": SECRET})
    assert [field["path"] for field in answer.json()["fields"]] == ["copies"]
    assert SECRET not in answer.text


async def test_a_full_queue_says_when_to_come_again(shop: Shop, web: Any) -> None:
    async with client_of(web) as client:
        assert (await client.post("/jobs/full/fill")).status_code == 202
        answer = await client.post("/jobs/full/fill")
    assert (answer.status_code, answer.json()["code"]) == (429, "overloaded")
    assert int(answer.headers["retry-after"]) >= 1


async def test_what_a_job_died_of_is_named_without_its_words(shop: Shop, web: Any) -> None:
    async with client_of(web) as client:
        delivered = await client.post("/jobs/mail/send", json={"to": SECRET})
        await shop.app.run_worker(until_empty=True)
        answer = await client.get(delivered.headers["location"])
    assert (answer.json()["state"], answer.json()["error"]["name"]) == ("dead", "Discard")
    assert SECRET not in answer.text


async def test_an_order_that_needs_a_tenant_has_the_credentials(shop: Shop) -> None:
    with_tenant = Starlette(routes=[Mount("/jobs", app=shop.router())])
    without = Starlette(routes=[Mount("/jobs", app=shop.router(tenant=None))])
    async with client_of(with_tenant) as client:
        assert (await client.post("/jobs/kept/keep", json=1)).status_code == 202
    async with client_of(without) as client:
        answer = await client.post("/jobs/kept/keep", json=1)
    assert (answer.status_code, answer.json()["field"]) == (422, "tenant")


async def test_a_broker_that_is_away_is_503_and_its_address_stays_inside() -> None:
    port = free_port()
    shop = Shop(f"redis://127.0.0.1:{port}")
    async with client_of(Starlette(routes=[Mount("/jobs", app=shop.router())])) as client:
        answer = await client.post("/jobs/mail/send", json={"to": "ana"})
        health = await client.get("/jobs/health")
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert int(answer.headers["retry-after"]) >= 1
    assert str(port) not in answer.text
    assert (health.status_code, health.json()) == (503, {"status": "unavailable"})
    await shop.app.close()


async def test_whoever_authorizes_may_answer_in_words_of_their_own(shop: Shop) -> None:
    async def forbid(_request: Request) -> bool:
        raise HTTPException(403, "not on Sundays")

    web = Starlette(routes=[Mount("/jobs", app=shop.router(authorize=forbid))])
    async with client_of(web) as client:
        answer = await client.post("/jobs/mail/send", json={"to": "ana"})
    assert (answer.status_code, answer.json()["detail"]) == (403, "not on Sundays")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"authorize": None}, "authorize must be a function"),
        ({"authorize": True}, "authorize must be a function"),
        ({"tasks": None}, "tasks must be a list of the app's tasks"),
        ({"tasks": []}, "tasks must be a list"),
        ({"tasks": ["send"]}, "tasks must be a list"),
    ],
)
def test_a_router_without_authorization_is_not_made(options: Any, words: str) -> None:
    shop = Shop("redis://127.0.0.1:1/0")
    with pytest.raises(ConfigError, match=words):
        shop.router(**options)
    with pytest.raises(ConfigError, match="authorize must be a function"):
        router(shop.app)
    with pytest.raises(ConfigError, match="tasks must be a list of the app's tasks"):
        shop.router(tasks=[Shop("redis://127.0.0.1:1/0").send])


def test_a_task_whose_jobs_need_a_key_has_no_door() -> None:
    shop = Shop("redis://127.0.0.1:1/0")
    keyed = shop.app.queue("keyed", order="key").task(name="push")(lambda: None)
    with pytest.raises(ConfigError, match="need a key, got keyed/push: its queue has order 'key'"):
        shop.router(tasks=[shop.send, keyed])


@pytest.mark.parametrize("kind", [Starlette, FastAPI])
async def test_errors_of_ones_own_routes_become_answers(shop: Shop, kind: Any) -> None:
    errors = {
        "conflict": JobConflict("job x exists"),
        "store": StoreUnavailable("cannot reach 10.0.0.7"),
        "bug": InternalError("ours"),
    }
    calls: dict[str, Callable[[], Any]] = {
        "id": lambda: shop.send.enqueue(Mail(to="ana"), id=f"card {SECRET}"),
        "at": lambda: shop.send.enqueue(Mail(to="ana"), at=datetime(2026, 1, 1)),  # noqa: DTZ001
        "headers": lambda: shop.send.enqueue(Mail(to="ana"), headers={"card": SECRET * 999}),
        "handle": lambda: shop.send.handle(f"card {SECRET}").view(),
        "tenant": lambda: shop.keep.enqueue(1),
    }

    async def fail(request: Request) -> JSONResponse:
        if call := calls.get(request.path_params["what"]):
            await call()
        raise errors[request.path_params["what"]]

    web = kind(routes=[Route("/{what}", fail)], exception_handlers=exception_handlers())
    async with client_of(web) as client:
        assert (await client.get("/conflict")).status_code == 409
        answer = await client.get("/store")
        refused = {what: await client.get(f"/{what}") for what in calls}
        with pytest.raises(InternalError):
            await client.get("/bug")
    assert (answer.status_code, "10.0.0.7" in answer.text) == (503, False)
    assert {what: one.json()["field"] for what, one in refused.items()} == {
        "id": "id", "at": "at", "headers": "card", "handle": "id", "tenant": "tenant",
    }  # fmt: skip
    for one in refused.values():
        assert (one.status_code, one.json()["code"]) == (422, "invalid")
        assert SECRET not in one.text
    rule = "id must be 1 to 128 printable characters without spaces"
    assert refused["id"].json()["detail"] == rule
    await shop.app.close()


@pytest.mark.parametrize(("seconds", "header"), [(0.2, "1"), (1.0, "1"), (1.2, "2"), (5.0, "5")])
def test_a_caller_is_told_to_wait_at_least_as_long_as_the_queue_asks_for(
    seconds: float, header: str
) -> None:
    answer = problem_of(Overloaded("full", retry_after=seconds, reason="queue mail at capacity"))
    assert answer is not None
    assert answer.headers["Retry-After"] == header
