"""The first use of a connection, when several come at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from faena import Faena, Task
from faena.errors import ConfigError
from tests._support.embedded import data_directory, is_held
from tests._support.valkey import Server


def task_on(app: Faena) -> Task[None, None]:
    @app.queue("q").task
    async def nothing() -> None: ...

    return nothing


async def at_once(number: int, task: Task[None, None], **options: Any) -> list[Any]:
    calls = (task.enqueue(**options) for _ in range(number))
    return await asyncio.gather(*calls, return_exceptions=True)


@pytest.fixture
def shard() -> Iterator[Path]:
    with data_directory() as directory:
        yield directory


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment that names no broker."""
    for name in ("FAENA_URL", "REDIS_URL", "REDIS_HOST", "REDIS_PORT", "FAENA_ENV"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


async def test_whoever_shares_a_failed_first_use_is_told_why_and_the_next_one_connects() -> None:
    with Server("appendonly no", "maxmemory-policy allkeys-lru", unix=True) as server:
        app = Faena("shop", server.url)
        task = task_on(app)
        async with asyncio.timeout(60):
            failed = await at_once(3, task)
        assert [type(one) for one in failed] == [ConfigError] * 3
        with server.client() as client:
            client.config_set("maxmemory-policy", "noeviction")
        assert (await task.enqueue()).status == "created"
        await app.close()


async def test_a_first_use_that_is_cancelled_as_it_succeeds_keeps_the_connection() -> None:
    with Server("appendonly no", unix=True) as server:
        app = Faena("shop", server.url)
        first = asyncio.ensure_future(app.connect())
        while not _openings(app):  # noqa: ASYNC110 - every turn counts: it must not have ended
            await asyncio.sleep(0)
        (opening,) = _openings(app)
        opening.add_done_callback(lambda _: first.cancel())
        await asyncio.wait([first])
        assert first.cancelled()
        await app.connect()
        assert _openings(app) == [opening]
        await app.close()


def _openings(app: Faena) -> list[asyncio.Future[None]]:
    return [each._opening for each in app._links._runtimes.values() if each._opening is not None]


async def test_first_uses_at_once_join_the_embedded_server_once(
    shard: Path, nowhere: pytest.MonkeyPatch
) -> None:
    app = Faena("shop", directory=shard)
    receipts = await at_once(8, task_on(app))
    assert [receipt.status for receipt in receipts] == ["created"] * 8
    await app.close()
    assert not is_held(shard / "server.lock"), "a second membership keeps the server"


async def test_first_fsynced_enqueues_at_once_share_their_calls() -> None:
    with Server(unix=True) as server:
        app = Faena("shop", server.url)
        task = task_on(app)
        await task.enqueue()
        receipts = await at_once(10, task, durability="fsynced")
        assert [receipt.durability for receipt in receipts] == ["fsynced"] * 10
        await app.close()
        with server.client() as client:
            calls = client.info("commandstats")["cmdstat_waitaof"]["calls"]
    assert calls < 10


async def test_apps_of_different_names_never_meet_on_a_server_and_a_namespace_is_shared() -> None:
    with Server("appendonly no", unix=True) as server:
        shop, office = Faena("shop", server.url), Faena("office", server.url)
        branch = Faena("branch", server.url, namespace="shop")
        tasks = [task_on(app) for app in (shop, office, branch)]
        await tasks[0].enqueue()
        ready = [(await app.queues["q"].counts())["ready"] for app in (shop, office, branch)]
        assert ready == [1, 0, 1]
        assert [app.namespace for app in (shop, office, branch)] == ["shop", "office", "shop"]
        assert await branch.broker() == f"{server.url}?db=0, namespace shop"
        for app in (shop, office, branch):
            await app.close()


async def test_a_broker_in_words_shows_no_password() -> None:
    app = Faena("shop", "redis://ana:s3cret@example.org:6380/2")
    assert await app.broker() == "valkey://ana:***@example.org:6380/2, namespace shop"


async def test_an_embedded_server_that_nobody_asked_for_is_told_once_and_loudly(
    shard: Path, nowhere: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = Faena("shop", directory=shard)
    await app.connect()
    await app.connect()
    said = f"an embedded Valkey in {shard}"
    assert await app.broker() == f"{said}, namespace shop"
    await app.close()
    (line,) = [record for record in caplog.records if record.name == "faena"]
    assert line.levelname == "WARNING"
    assert line.getMessage() == (
        f"no FAENA_URL: using {said}; for production set FAENA_URL=valkey://host:6379"
    )


@pytest.mark.parametrize("where", ["production", "staging"])
async def test_in_production_an_app_without_an_address_is_refused_and_starts_nothing(
    shard: Path, nowhere: pytest.MonkeyPatch, where: str
) -> None:
    nowhere.setenv("FAENA_ENV", where)
    app = Faena("shop", directory=shard)
    with pytest.raises(ConfigError, match=f"FAENA_ENV={where} an app must have a broker") as error:
        await app.connect()
    assert error.value.field == "FAENA_URL"
    assert not shard.exists()  # noqa: ASYNC240 - nothing else runs in this loop
    nowhere.setenv("FAENA_ENV", "development")
    await app.connect()
    await app.close()
