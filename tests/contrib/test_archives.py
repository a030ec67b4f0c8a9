"""Archived rows over HTTP: the tenant of the credential, and nobody else, gets them."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Mount

from faena import Faena
from faena.contrib.archives import archives_app
from faena.errors import ConfigError
from faena.pg import Postgres
from faena.pg.archive.store import open_store
from tests._support import postgres
from tests._support.archived import archive, keys_in, row
from tests._support.eventually import eventually
from tests._support.working import serving

SECRET = "s" * 32
TENANTS = {"Bearer a": "org-1", "Bearer b": "org-2"}
A, B = {"Authorization": "Bearer a"}, {"Authorization": "Bearer b"}
YEAR = {"table": "jobs", "from": "2023-01-01", "to": "2023-12-31"}


class Clock:
    now = datetime(2026, 1, 1, tzinfo=UTC).timestamp()

    def __call__(self) -> float:
        return self.now


async def tenant_of(request: Request) -> str | None:
    given = request.headers.get("authorization")
    if given == "Bearer blocked":
        raise HTTPException(403, "blocked")
    return TENANTS.get(given or "")


@pytest.fixture
def database() -> Iterator[str]:
    cluster = postgres.shared()
    name = f"archives_{id(object())}"
    yield cluster.create(name, "migrated")
    cluster.drop(name)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def pg(app: Faena, database: str, tmp_path: Path, clock: Clock) -> AsyncIterator[Postgres]:
    async with Postgres(app, database) as pg:
        store = open_store(tmp_path / "archives")
        pg.retrieval(secrets=SECRET, to=store.url, clock=clock)
        await archive(pg, store, "org-1", [row(1, "2023-02-02 00:00:00+00")])
        await archive(pg, store, "org-2", [row(2, "2023-02-02 00:00:00+00")])
        yield pg


@pytest.fixture
async def web(pg: Postgres) -> AsyncIterator[httpx.AsyncClient]:
    async with client(pg) as web:
        yield web


def client(pg: Postgres, **options: Any) -> httpx.AsyncClient:
    mounted = Mount("/api", archives_app(pg, tenant_of=tenant_of, **options))
    transport = httpx.ASGITransport(Starlette(routes=[mounted]))
    return httpx.AsyncClient(transport=transport, base_url="http://test")


def told(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["code"]


async def ready(web: httpx.AsyncClient, who: dict[str, str], **change: str) -> dict[str, Any]:
    begun = await web.get("/api/archives", params={**YEAR, **change}, headers=who)
    assert begun.status_code == 202, begun.text
    where = begun.headers["location"]

    async def is_ready() -> bool:
        return (await web.get(where, headers=who)).json()["state"] == "ready"

    await eventually(is_ready)
    return (await web.get(where, headers=who)).json()


async def test_another_method_is_refused_by_a_problem(web: httpx.AsyncClient) -> None:
    for method in ("POST", "DELETE"):
        answer = await web.request(method, "/api/archives", params=YEAR, headers=A)
        assert told(answer) == (405, "refused")
        assert answer.headers["allow"] == "GET, HEAD"


async def test_a_request_becomes_a_link_and_the_link_a_file(
    app: Faena, web: httpx.AsyncClient
) -> None:
    begun = await web.get("/api/archives", params=YEAR, headers=A)
    facts = begun.json()
    assert (begun.status_code, facts["state"], "link" in facts) == (202, "waiting", False)
    assert begun.headers["location"] == facts["status"] == f"/api/archives/{facts['id']}"
    again = await web.get("/api/archives", params=YEAR, headers=A)
    assert again.json()["id"] == facts["id"]
    async with serving(app):
        done = await ready(web, A)
    assert (done["id"], done["rows"]) == (facts["id"], 1)
    assert done["link_expires_at"] == "2026-01-01T01:00:00+00:00"
    file = await web.get(done["link"], headers=A)
    assert file.status_code == 200
    assert file.headers["content-type"] == "application/gzip"
    assert file.headers["x-checksum-sha256"] == done["sha256"]
    assert int(file.headers["content-length"]) == done["size"] == len(file.content)
    for answer in (begun, again, file):  # no proxy keeps it, and gives it to others
        assert answer.headers["cache-control"] == "private, no-store"
    assert file.headers["x-content-type-options"] == "nosniff"
    assert file.headers["content-disposition"].startswith("attachment;")
    assert gzip.decompress(file.content) == b'{"id": "1", "at": "2023-02-02 00:00:00+00"}\n'
    found = await web.get("/api/archives", params=YEAR, headers=A)
    assert found.json()["state"] == "ready"


async def test_requests_and_links_of_another_tenant_do_not_exist(
    app: Faena, pg: Postgres, web: httpx.AsyncClient
) -> None:
    async with serving(app):
        done = await ready(web, A)
    unknown = await web.get(f"/api/archives/{'0' * 32}", headers=B)
    others = await web.get(f"/api/archives/{done['id']}", headers=B)
    assert told(unknown) == told(others) == (404, "not_found")
    assert unknown.content == others.content
    stolen = await web.get(done["link"], headers=B)
    made_up = await web.get("/api/archives/download/abc", headers=B)
    assert told(stolen) == told(made_up) == (403, "forbidden")
    assert stolen.content == made_up.content
    assert told(await web.get(done["link"])) == (401, "unauthorized")
    async with client(pg, open_links=True) as opened:
        assert (await opened.get(done["link"])).status_code == 200
        assert told(await opened.get(f"/api/archives/{done['id']}")) == (401, "unauthorized")


async def test_a_link_to_a_file_that_was_removed_tells_others_nothing(
    app: Faena, pg: Postgres, web: httpx.AsyncClient
) -> None:
    async with serving(app):
        link = (await ready(web, A))["link"]
    async with pg.transaction() as connection:
        await connection.execute("UPDATE faena.retrievals SET state = 'erased'")
    stolen = await web.get(link, headers=B)
    made_up = await web.get("/api/archives/download/abc", headers=B)
    assert told(stolen) == told(made_up) == (403, "forbidden")
    assert stolen.content == made_up.content
    assert told(await web.get(link, headers=A)) == (410, "expired")


async def test_a_link_ends_and_one_that_was_changed_is_refused(
    app: Faena, web: httpx.AsyncClient, clock: Clock
) -> None:
    async with serving(app):
        link = (await ready(web, A))["link"]
    wrong = link[:-1] + ("A" if link[-1] != "A" else "B")
    assert told(await web.get(wrong, headers=A)) == (403, "forbidden")
    clock.now += 3600
    assert told(await web.get(link, headers=A)) == (410, "expired")
    assert told(await web.get(wrong, headers=A)) == (403, "forbidden")
    clock.now += 100_000
    where = link.rpartition("/download/")[0]
    state = (await web.get("/api/archives", params=YEAR, headers=A)).json()["state"]
    assert (where, state) == ("/api/archives", "waiting")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"table": "secrets"}, "table"),
        ({"table": "../../etc/passwd"}, "table"),
        ({"table": "jobs\0"}, "table"),
        ({"table": ""}, "table"),
        ({"from": "2023-02-30"}, "from"),
        ({"from": "2024-01-01"}, "from"),
        ({"to": "soon"}, "to"),
        ({"to": ""}, "to"),
        ({"tenant": "org-2"}, "query"),
    ],
)
async def test_a_bad_query_is_refused_with_its_field(
    web: httpx.AsyncClient, change: dict[str, str], field: str
) -> None:
    answer = await web.get("/api/archives", params={**YEAR, **change}, headers=A)
    assert told(answer) == (422, "invalid")
    assert answer.json()["field"] == field
    assert "etc" not in answer.text


@pytest.mark.parametrize(
    "path",
    ["..%2f..%2fetc", "a%2fb", "%F0%9F%90%8D", "x" * 5000, "download/%00", "download/%2e%2e"],
)
async def test_paths_that_try_to_leave_find_nothing(web: httpx.AsyncClient, path: str) -> None:
    answer = await web.get(f"/api/archives/{path}", headers=A)
    assert answer.status_code in {403, 404}


async def test_no_credential_no_answer(web: httpx.AsyncClient) -> None:
    assert told(await web.get("/api/archives", params=YEAR)) == (401, "unauthorized")
    blocked = {"Authorization": "Bearer blocked"}
    assert told(await web.get("/api/archives", params=YEAR, headers=blocked)) == (403, "refused")


async def test_a_damaged_archive_is_told_without_its_address(
    app: Faena, web: httpx.AsyncClient, tmp_path: Path
) -> None:
    store = open_store(tmp_path / "archives")
    for key in await keys_in(store, "public.jobs/t-org-1"):
        await store.put(key, b"damaged")
    async with serving(app):
        begun = await web.get("/api/archives", params=YEAR, headers=A)
        where = begun.headers["location"]

        async def is_over() -> bool:
            return (await web.get(where, headers=A)).json()["state"] == "failed"

        await eventually(is_over)
    answer = (await web.get(where, headers=A)).json()
    assert "cannot be read" in answer["problem"]
    assert "t-org-1" not in str(answer)
    assert "link" not in answer


async def test_it_does_not_start_without_a_secret_or_a_tenant(
    app: Faena, pg: Postgres, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FAENA_ARCHIVE_SECRET", raising=False)
    with pytest.raises(ConfigError, match="tenant_of must be a function"):
        archives_app(pg)
    bare = Postgres(Faena("bare"), database)
    with pytest.raises(ConfigError, match="which is missing"):
        archives_app(bare, tenant_of=tenant_of)
    bare.retrieval()
    with pytest.raises(ConfigError, match="FAENA_ARCHIVE_SECRET"):
        archives_app(bare, tenant_of=tenant_of)
