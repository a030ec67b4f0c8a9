"""What readers are given, as plain dicts: for web frameworks, logs and anything else of JSON."""

from __future__ import annotations

import json
from typing import Any

import httpx
from fastapi import FastAPI

from faena import Discard, Faena
from faena.testing import Harness

SECRET = "4111-1111-1111-1111"


async def views_of(app: Faena, h: Harness) -> dict[str, Any]:
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
    waiting = await send.enqueue("leo")
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
        "health": await app.health(),
        "group": await group.view(),
        "letters": await app.dead_letters.list(),
        "stats": await app.dead_letters.stats(),
        "schedule": await app.schedules.get("remind"),
        "homes": await queue.homes(),
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
    assert (told["health"]["is_ok"], told["health"]["queues"]["mail"]["waiting"]) == (True, 0)


async def test_a_route_of_fastapi_returns_a_view_as_its_dict(app: Faena, h: Harness) -> None:
    app.queue("mail")
    web = FastAPI()

    @web.get("/health")
    async def health() -> dict[str, Any]:
        return (await app.health()).to_dict()

    transport = httpx.ASGITransport(web)
    async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
        answer = await client.get("/health")
    assert (answer.status_code, answer.json()["is_ok"]) == (200, True)
