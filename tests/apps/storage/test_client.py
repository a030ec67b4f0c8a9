"""Objects in a directory, in memory and in a bucket: the same calls, the same answers."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import traceback
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from apps.providers.storage import (
    MOST_BYTES,
    Client,
    NotFound,
    Permanent,
    Retryable,
    Settings,
    check_key,
    storage_upstream,
)
from apps.sandbox.stand_in import serving
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from faena import Faena
from faena.testing import harness
from tests._support.eventually import eventually
from tests._support.object_server import ObjectServer, running

KEY = "org-7/invoices/0001-00000042.pdf"


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectServer]:
    with running() as server:
        yield server


@pytest.fixture
def bucket(server: ObjectServer, tmp_path: Path) -> Settings:
    name = f"b{os.getpid()}-{tmp_path.name[-20:].strip('_')}".lower().replace("_", "-")
    made = server.bucket(name)
    return Settings(
        url=f"s3://{name}/campo/files",
        endpoint=made.endpoint,
        access_key=made.access_key,
        secret_key=made.secret_key,
    )


@pytest.fixture(params=["directory", "memory", "bucket"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Client:
    if request.param == "bucket":
        return Client(request.getfixturevalue("bucket"))
    place = "memory://" if request.param == "memory" else (tmp_path / "files ñ").as_uri()
    return Client(Settings(url=place))


async def test_an_object_is_read_as_it_was_put_and_replaced(client: Client) -> None:
    content = os.urandom(1 << 20)
    await client.put(KEY, b"before", kind="application/pdf")
    await client.put(KEY, content, kind="application/pdf")
    assert await client.get(KEY) == content
    await client.put("empty", b"")
    assert await client.get("empty") == b""


async def test_an_object_that_is_not_there_is_not_found_and_need_not_be_deleted(
    client: Client,
) -> None:
    with pytest.raises(NotFound):
        await client.get(KEY)
    await client.delete(KEY)
    await client.put(KEY, b"x")
    await client.delete(KEY)
    with pytest.raises(NotFound):
        await client.get(KEY)


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/etc/passwd",
        "..",
        "../x",
        "a/../b",
        "a/./b",
        "a//b",
        "a/",
        ".hidden",
        "a/.hidden",
        "a\\b",
        "a b",
        "a\nb",
        "a\x00",
        "ñ",
        "a?b",
        "a#b",
        "a%2e%2e",
        "x" * 201,
        "/".join(["x" * 100] * 10),
    ],
)
async def test_a_key_cannot_leave_its_place(key: str, client: Client, tmp_path: Path) -> None:
    for call in (client.put(key, b"x"), client.get(key), client.delete(key), client.link(key)):
        with pytest.raises(Permanent, match="a key must be"):
            await call
    assert files_in(tmp_path) == []
    assert check_key(KEY) == KEY


def files_in(directory: Path) -> list[Path]:
    return [one for one in directory.rglob("*") if one.is_file()]


async def test_sizes_kinds_and_lifetimes_have_bounds(client: Client) -> None:
    with pytest.raises(Permanent, match="at most"):
        await client.put(KEY, bytes(MOST_BYTES + 1))
    for kind in ("pdf", "text/html\r\nx: y", "Text/HTML", ""):
        with pytest.raises(Permanent, match="a kind must be"):
            await client.put(KEY, b"", kind=kind)
    for lifetime in (timedelta(), timedelta(seconds=-1), timedelta(days=8)):
        with pytest.raises(Permanent, match="lifetime"):
            await client.link(KEY, lifetime=lifetime)


async def test_an_object_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    client = Client(Settings(url=tmp_path.as_uri()))
    with (tmp_path / "large").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(Permanent, match="to be read"):
        await client.get("large")


async def test_a_link_to_a_bucket_is_signed_and_tells_the_kind(bucket: Settings) -> None:
    client = Client(bucket)
    await client.put(KEY, b"%PDF", kind="application/pdf")
    link = await client.link(KEY, lifetime=timedelta(minutes=5))
    assert "X-Amz-Expires=300" in link
    assert bucket.secret_key is not None
    assert bucket.secret_key not in link
    content, kind = await asyncio.to_thread(fetched, link)
    assert (content, kind) == (b"%PDF", "application/pdf")


def fetched(link: str) -> tuple[bytes, str]:
    with urllib.request.urlopen(link) as answer:
        return answer.read(), answer.headers["content-type"]


async def test_a_link_is_public_where_there_is_such_a_place(bucket: Settings) -> None:
    public = dataclasses.replace(bucket, public_url="https://cdn.campo.example/files/")
    assert await Client(public).link(KEY) == f"https://cdn.campo.example/files/{KEY}"


async def test_a_link_to_a_file_is_its_address(tmp_path: Path) -> None:
    client = Client(Settings(url=(tmp_path / "files ñ").as_uri()))
    await client.put(KEY, b"x")
    content, _ = await asyncio.to_thread(fetched, await client.link(KEY))
    assert content == b"x"
    assert await Client(Settings(url="memory://")).link(KEY) == f"memory:///{KEY}"


async def test_a_wrong_bucket_is_permanent(bucket: Settings) -> None:
    strange = dataclasses.replace(bucket, url="s3://no-such-bucket-here")
    with pytest.raises(NotFound):
        await Client(strange).put(KEY, b"x")


@asynccontextmanager
async def answering(status: int) -> AsyncIterator[tuple[Settings, list[str]]]:
    asked: list[str] = []

    async def answer(request: Request) -> Response:
        await request.body()
        asked.append(request.method)
        return Response("<Error><Code>SlowDown</Code></Error>", status)

    methods = ["GET", "PUT", "DELETE"]
    async with serving(Starlette(routes=[Route("/{path:path}", answer, methods=methods)])) as url:
        yield Settings(url="s3://bucket", endpoint=url, access_key="a", secret_key="secreto"), asked


@pytest.mark.parametrize(
    ("status", "kind"),
    [(500, Retryable), (503, Retryable), (403, Permanent), (401, Permanent), (404, NotFound)],
)
async def test_each_status_has_its_meaning_and_is_asked_for_once(
    status: int, kind: type[Exception]
) -> None:
    async with answering(status) as (settings, asked):
        with pytest.raises(kind) as caught:
            await Client(settings).put(KEY, b"contenido")
        with pytest.raises(kind):
            await Client(settings).get(KEY)
    assert asked == ["PUT", "GET"]
    shown = "".join(traceback.format_exception(caught.value))
    assert "secreto" not in shown
    assert "Signature" not in shown


async def test_a_store_that_cannot_be_reached_can_be_asked_again(bucket: Settings) -> None:
    nobody = dataclasses.replace(bucket, endpoint="http://127.0.0.1:9", timeout_s=5)
    for call in (Client(nobody).put(KEY, b""), Client(nobody).get(KEY), Client(nobody).delete(KEY)):
        with pytest.raises(Retryable):
            await call


async def test_a_store_that_is_silent_is_not_waited_for(bucket: Settings) -> None:
    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(wait, "127.0.0.1", 0)
    before = len(asyncio.all_tasks())
    async with silent:
        url = f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}"
        with pytest.raises(Retryable):
            await Client(dataclasses.replace(bucket, endpoint=url, timeout_s=0.3)).get(KEY)
        await eventually(lambda: len(asyncio.all_tasks()) == before)


def test_settings_do_not_show_the_secret_and_must_make_sense() -> None:
    environ = {
        "STORAGE_URL": "s3://campo/files",
        "STORAGE_ACCESS_KEY": "AKIA",
        "STORAGE_SECRET_KEY": "secreto",
        "STORAGE_ENDPOINT": "https://storage.example",
    }
    settings = Settings.from_env(environ)
    assert settings.bucket() == ("campo", "files")
    assert "secreto" not in repr(settings)
    with pytest.raises(ValueError, match="STORAGE_URL must be set"):
        Settings.from_env({})
    for wrong in (
        {"url": "gs://campo"},
        {"url": "s3://Campo_1"},
        {"url": "s3://campo/../x"},
        {"url": "file://host/srv"},
        {"url": "file:///srv/../etc"},
        {"url": "file:srv"},
        {"url": "memory://x"},
        {"secret_key": None},
        {"endpoint": "http://storage.example"},
        {"public_url": "javascript:alert(1)"},
    ):
        with pytest.raises(ValueError, match="must"):
            dataclasses.replace(settings, **wrong)


async def test_jobs_of_missing_objects_end_and_others_are_retried(tmp_path: Path) -> None:
    app = Faena("shop")
    storage, queue = storage_upstream(app), app.queue("files")
    client = Client(Settings(url=tmp_path.as_uri()))

    @queue.task(upstreams=[storage])
    async def read(key: str) -> int:
        return len(await client.get(key))

    meaning = storage.sorts(Retryable("x"))
    assert meaning is not None
    assert meaning.kind == "retryable"
    async with harness(app) as h:
        await client.put(KEY, b"abc")
        await read.enqueue(KEY)
        await read.enqueue("missing")
        assert (await h.drain()).counts == {"completed": 1, "dead": 1}
