"""Every reading answers what its description says, and nothing to those who may not ask."""

from __future__ import annotations

import re
from typing import Any

import jsonschema

from faena import Faena, Retry
from faena.web.access.role import Role
from faena.web.reading.declared import READINGS
from faena.web.reading.reading import Reading
from tests.web.api.busy import Busy
from tests.web.api.conftest import Client

_STREAMS = {"events", "metrics"}
_QUERIES = {"advice.what-if": "?slots=4&window=5m&weight=acme=2"}

NONSENSE = (
    "queues?limit=0",
    "queues?cursor=x",
    "queues?limit=2&limit=3",
    "queues?unknown=1",
    "queues/nail",
    "queues/mail/jobs?state=gone",
    "queues/mail/jobs?cursor=x",
    "queues/mail/jobs/no-such-job",
    "queues/mail/jobs/%00",
    "queues/mail/statistics?window=1y",
    "queues/mail/statistics?until=2026-11-01",
    "queues/mail/series?step=7s",
    "queues/mail/shares?minutes=99",
    "queues/mail/what-if",
    "queues/mail/what-if?limit=often",
    "queues/mail/what-if?weight=acme",
    "queues/mail/flows/none",
    "queues/mail/groups/none",
    "queues/mail/redrives/none",
    "queues/mail/dead/none",
    "dead?queue=nail",
    "dead?older_than=soon",
    "dead?fingerprint=%00",
    "schedules/none",
    "upstreams/none",
    "features/none",
    "costs?month=13",
    "costs?top=1000",
    "advice?queue=nail",
    "audit?cursor=x",
    "events?kind=nothing",
    "events?since=yesterday",
    "health?timeout=long",
    "nowhere",
)


def path_of(one: Reading, busy: Busy) -> str:
    """The path of a reading, of something that is there."""
    parts = dict(busy.parts)
    if one.name == "dead.show":
        parts["job"] = parts["dead"]
    found = re.sub(r"\{(\w+)\}", lambda part: parts[part[1]], one.path)
    return f"/api{found}{_QUERIES.get(one.name, '')}"


async def test_every_reading_answers_as_its_description_says(
    app: Faena, busy: Busy, client: Client
) -> None:
    asking = await client(Role.OWNER, sees_payloads=True)
    described: dict[str, Any] = (await asking.get("/api/openapi.json")).json()
    for one in READINGS:
        if one.name in _STREAMS:
            continue
        answer = await asking.get(path_of(one, busy))
        assert answer.status_code == 200, (one.name, answer.text)
        told = described["paths"][one.path]["get"]["responses"]["200"]["content"]
        schema = told["application/json"]["schema"] | {"components": described["components"]}
        try:
            jsonschema.validate(answer.json(), schema)
        except jsonschema.ValidationError as error:
            raise AssertionError(f"{one.name}: {error.message} at {error.json_path}") from None


async def test_an_answer_that_is_known_is_not_sent_again(busy: Busy, client: Client) -> None:
    asking = await client(Role.VIEWER)
    first = await asking.get("/api/queues/mail/settings")
    assert first.headers["etag"].startswith('"')
    known = {"if-none-match": f'"other", W/{first.headers["etag"]}'}
    again = await asking.get("/api/queues/mail/settings", headers=known)
    assert (again.status_code, again.content) == (304, b"")
    await busy.mail.configure(max_running=7)
    assert (await asking.get("/api/queues/mail/settings", headers=known)).status_code == 200


async def test_lists_go_on_where_the_page_before_ended(
    app: Faena, busy: Busy, client: Client
) -> None:
    for name in ("alpha", "beta", "gamma"):
        app.queue(name)
    asking = await client(Role.VIEWER)
    found: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        more = f"&cursor={cursor}" if cursor else ""
        page = (await asking.get(f"/api/queues?limit=2{more}")).json()
        found += [one["queue"] for one in page["items"]]
        cursor = page["cursor"]
    assert found == sorted(app.queues)


async def test_payloads_are_for_those_who_may_see_them(busy: Busy, client: Client) -> None:
    path = f"/api/queues/mail/jobs/{busy.parts['job']}"
    stranger = await client(Role.OWNER)
    assert (await stranger.get(f"{path}?payload=true")).status_code == 403
    assert (await stranger.get(f"{path}/result")).status_code == 403
    assert (await stranger.get(f"{path}/log")).status_code == 403
    shown = (await stranger.get(path)).json()
    assert not {"payload", "headers", "result", "log", "progress"} & shown.keys()
    assert (await stranger.get("/api/schedules/nightly?payload=true")).status_code == 403

    reader = await client(Role.VIEWER, sees_payloads=True)
    shown = (await reader.get(f"{path}?payload=true")).json()
    assert shown["payload"] == {"to": "ana", "password": "veiled"}
    told = (await reader.get(f"{path}/result")).json()
    assert told["result"] == {"sent": True, "password": "veiled"}
    answer = await reader.get("/api/schedules/nightly?payload=true")
    assert answer.json()["payload"] == {"to": "all", "token": "veiled"}


async def test_one_tenant_is_told_nothing_of_others(busy: Busy, client: Client) -> None:
    acme = await client(Role.OWNER, tenant="acme", sees_payloads=True)
    for one in READINGS:
        if one.name in _STREAMS:
            continue
        answer = await acme.get(path_of(one, busy))
        assert answer.status_code in ({200, 404} if one.is_for_tenant else {403}), one.name
        assert "bolt" not in answer.text, one.name
        assert busy.parts["dead"] not in answer.text.replace("no such dead job dead-1", "")
    assert (await acme.get("/api/queues/mail/tenants/bolt")).status_code == 404
    assert (await acme.get("/api/dead?tenant=bolt")).status_code == 404
    assert (await acme.get("/api/dead")).json()["items"] == []
    told = (await acme.get(f"/api/queues/mail/jobs/{busy.parts['job']}/explain")).json()
    assert not {"ahead", "rate", "claimed", "upstreams"} & told.keys()


async def test_what_makes_no_sense_is_answered_in_words(busy: Busy, client: Client) -> None:
    asking = await client(Role.OWNER, sees_payloads=True)
    for path in NONSENSE:
        answer = await asking.get(f"/api/{path}")
        assert answer.status_code in {404, 422}, (path, answer.text)
        assert answer.headers["content-type"] == "application/problem+json", path
        assert answer.json().keys() >= {"title", "status", "code", "detail"}, path


async def test_cursors_of_one_tenant_say_nothing_of_others(app: Faena, client: Client) -> None:
    @app.queue("mail", retry=Retry.fixed("1s", attempts=1)).task
    async def send() -> None:
        raise ValueError("the printer is on fire")

    for number in range(3):
        await send.enqueue(tenant="acme", id=f"own-{number}")
    await app.run_worker(until_empty=True)
    viewer, acme = await client(Role.VIEWER), await client(Role.VIEWER, tenant="acme")
    other = await client(Role.VIEWER, tenant="bolt")
    plain = (await viewer.get("/api/dead?tenant=acme&limit=2")).json()["cursor"]
    page = (await acme.get("/api/dead?limit=2")).json()
    rest = (await acme.get(f"/api/dead?limit=2&cursor={page['cursor']}")).json()
    assert sorted(one["id"] for one in page["items"] + rest["items"]) == ["own-0", "own-1", "own-2"]
    assert (await acme.get(f"/api/dead?cursor={plain}")).status_code == 422
    assert (await other.get(f"/api/dead?cursor={page['cursor']}")).status_code == 422
