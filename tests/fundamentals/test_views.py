"""What readers are given, as plain dicts: for web frameworks, logs and anything else of JSON."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import Any

import httpx
import msgspec
from fastapi import FastAPI

import faena
from faena import Backpressure, Discard, Faena, Limit
from faena.testing import Harness
from faena.values.view import View

PRESSED = Backpressure(soft=4, hard=9)

SECRET = "4111-1111-1111-1111"


async def views_of(app: Faena, h: Harness) -> dict[str, Any]:  # size: a line a view
    queue = app.queue("mail")

    @queue.task
    async def send(to: str) -> dict[str, str]:
        if to == SECRET:
            raise Discard("no such address")
        return {"sent": to}

    @app.every("1h", payload=SECRET)
    @queue.task
    async def remind(to: str) -> None: ...

    await app.schedules.declare()
    await queue.pause(by="ana")
    waiting = await send.enqueue("leo", tenant="acme")
    explained = await waiting.handle.explain()
    overview = await queue.overview()
    await queue.resume()
    headers = {"card": SECRET}
    done = await send.enqueue("ana", id="done", headers=headers)
    dead = await send.enqueue(SECRET, headers=headers)
    async with app.group() as group:
        await group.enqueue(send, "eva")
    await h.drain()
    return {
        "receipt": done,
        "view": await done.handle.view(),
        "dead": await dead.handle.view(),
        "page": await queue.jobs("completed"),
        "overview": overview,
        "explanation": explained,
        "health": await app.health(timeout="60s"),
        "group": await group.view(),
        "letters": await app.dead_letters.list(),
        "stats": await app.dead_letters.stats(),
        "schedule": await app.schedules.get("remind"),
        "shards": await queue.shards(),
        "tenant": await queue.tenant("acme").configure(limits=[Limit("5/min")], weight=2),
        "shares": (await queue.shares())[-1],
        "settings": await queue.configure(limits=[Limit("9/min")], backpressure=PRESSED),
        "finding": (await app.doctor())[0],
    }


async def test_every_view_is_a_dict_of_what_json_has_without_what_jobs_carry(
    app: Faena, h: Harness
) -> None:
    views = await views_of(app, h)
    told = {name: view.to_dict() for name, view in views.items()}
    assert json.loads(json.dumps(told)) == told
    assert SECRET not in json.dumps(told)
    receipt = told["receipt"]
    assert (receipt["id"], receipt["status"], receipt["is_accepted"]) == ("done", "created", True)
    assert (told["view"]["state"], told["view"]["result"]) == ("completed", {"sent": "ana"})
    assert told["view"]["finished_at"] == views["view"].finished_at
    assert told["dead"]["errors"][0]["message"] == "no such address"
    assert told["page"]["jobs"][0]["state"] == "completed"
    assert told["overview"]["holds"][0]["by"] == "ana"
    assert (told["tenant"]["limits"], told["tenant"]["is_held"]) == (["5/min"], False)
    assert told["shares"]["waits"]["acme"]["number"] == 1
    assert (told["settings"]["limits"], told["settings"]["backpressure"]["hard"]) == (["9/min"], 9)
    assert told["finding"]["name"] == "writes"
    assert (told["health"]["is_ok"], told["health"]["queues"]["mail"]["waiting"]) == (True, 0)


GIVEN = {
    *(
        "Backpressure",
        "Breaker",
        "DeadLetters",
        "Draft",
        "Durability",
        "IdempotencyKey",
        "Limit",
        "Metrics",
    ),
    *("Alerts", "Chat", "Log", "Mail", "Rule", "Thresholds", "Webhook"),
    *("Escalate", "Fallback", "Manual"),
    *(
        "Budget",
        "Money",
        "Pool",
        "Price",
        "Retain",
        "Retry",
        "Unique",
        "WebhookKey",
        "WorkerOptions",
        "Waits",
    ),
}
"""Public values that programs give, and one that is part of a view."""

GIVEN_TO_HANDLERS = {"Death", "Escalation", "Failure"}


def test_every_public_value_that_a_reader_is_given_is_a_view() -> None:
    public = {name: getattr(faena, name) for name in faena.__all__}
    values = {
        name
        for name, one in public.items()
        if dataclasses.is_dataclass(one)
        or (isinstance(one, type) and issubclass(one, msgspec.Struct | tuple))
    }
    views = {name for name in values if issubclass(public[name], View)}
    assert values - views == GIVEN | GIVEN_TO_HANDLERS
    assert views >= {"Settings", "Shares", "TenantView"}


async def test_of_an_ordinary_job_that_is_completed_its_producers_clock_tells_when_it_was_made(
    app: Faena, h: Harness
) -> None:
    @app.queue("mail").task
    async def send() -> None: ...

    before = time.time_ns() // 1_000_000 * 1000
    made, own = await send.enqueue(), await send.enqueue(id="0N" + "a" * 18)
    await h.drain()
    view, other = await made.handle.view(), await own.handle.view()
    assert view is not None
    assert view.created_at is not None
    assert before <= view.created_at <= time.time_ns() // 1000
    assert (view.enqueued_at, view.started_at) == (None, None)
    assert other is not None
    assert other.created_at is None


async def test_a_route_of_fastapi_returns_a_view_as_its_dict(app: Faena, h: Harness) -> None:
    app.queue("mail")
    web = FastAPI()

    @web.get("/health")
    async def health() -> dict[str, Any]:
        return (await app.health(timeout="60s")).to_dict()

    transport = httpx.ASGITransport(web)
    async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
        answer = await client.get("/health")
    assert (answer.status_code, answer.json()["is_ok"]) == (200, True)
