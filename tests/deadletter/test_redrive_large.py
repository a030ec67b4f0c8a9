"""G12: a redrive of thousands of dead jobs whose driver is killed over and over.

FAENA_SEARCH=full has 100,000.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import redis

from faena.engine.calls.deadletter import SLICE
from tests._support.command import Service, run
from tests._support.dead_jobs_app import app, fill
from tests._support.eventually import eventually
from tests._support.search import IS_FULL
from tests._support.valkey import Server

NUMBER = 100_000 if IS_FULL else 12_000
TARGET = "tests._support.dead_jobs_app:app"
KEY = "dead_jobs:{mail}:"


async def bury(url: str) -> list[str]:
    with app.override(url=url):
        async with app:
            return await fill((await app.runtime()).engine, NUMBER)


def slowest_call(client: redis.Redis) -> tuple[int, int]:
    """How many slices there were, and the longest of them in us of server time."""
    entries: list[dict[str, Any]] = client.slowlog_get(100_000)
    slices = [one["duration"] for one in entries if "_redrive " in str(one["command"])]
    return len(slices), max(slices)


def specs(client: redis.Redis) -> dict[str, str]:
    return dict(client.hscan_iter(f"{KEY}specs", count=5000))


async def test_a_redrive_goes_on_where_it_was_killed_and_loses_and_doubles_nothing(
    server: Server, tmp_path: Path
) -> None:
    dead = set(await bury(server.url))
    with server.client() as client:
        client.config_set("slowlog-max-len", 100_000)
        before = specs(client)
        await find_the_needle(server.url, client)
        client.config_set("slowlog-log-slower-than", 100)
        redrive = await drive_and_die(client, server, tmp_path)
        command = ("dlq", "redrive", TARGET, "mail", "--resume", redrive)
        with Service(*command, log=tmp_path / "last.log", FAENA_URL=server.url) as service:
            code, _ = await service.ended()
        client.config_set("slowlog-log-slower-than", 10_000)
        assert code == 0, (tmp_path / "last.log").read_text()
        number, longest = slowest_call(client)
        print(f"\n{NUMBER} dead jobs in {number} slices, the slowest took {longest} us")  # noqa: T201 - read, not asserted
        check(client, dead, before)


async def find_the_needle(url: str, client: redis.Redis) -> None:
    """A page of a filter that one job fits costs a call for each shard and one for its jobs."""
    with app.override(url=url):
        async with app:
            await app.dead_letters.stats()
            client.config_resetstat()
            page = await app.dead_letters.list(tenant="acme", error="ETIMEDOUT", task="send")
            calls = client.info("commandstats")["cmdstat_fcall"]["calls"]
    assert ([one.tenant for one in page.items], page.cursor) == (["acme"], None)
    assert calls <= 2


async def drive_and_die(client: redis.Redis, server: Server, tmp_path: Path) -> str:
    """Have drivers begin and go on, each killed under way; returns the redrive's name."""
    args: tuple[str, ...] = ("--error", "ETIMEDOUT", "--canary", "0")
    redrive = ""
    for turn in range(3):
        goal = client.zcard(f"{KEY}ready") + NUMBER // 20
        command = ("dlq", "redrive", TARGET, "mail", *args)
        with Service(*command, log=tmp_path / f"{turn}.log", FAENA_URL=server.url) as service:
            await eventually(lambda: client.zcard(f"{KEY}ready") >= goal)  # noqa: B023 - in the turn
            service.kill()
        (name,) = client.hkeys(f"{KEY}redrives")
        redrive = name
        args = ("--resume", redrive)
    assert NUMBER * 3 // 20 <= client.zcard(f"{KEY}ready") < NUMBER
    stopped = run("dlq", "redrive", TARGET, "mail", "--stop", redrive, FAENA_URL=server.url)
    assert ": stopped, " in stopped.out
    return redrive


def check(client: redis.Redis, dead: set[str], before: dict[str, str]) -> None:
    """Every dead job was made into one new one of the same bytes, and is still there."""
    after = specs(client)
    made = {job: spec for job, spec in after.items() if job not in before}
    assert {job: after[job] for job in before} == before
    assert Counter(made.values()) == Counter(before.values())
    ready = {job for job, _ in client.zscan_iter(f"{KEY}ready", count=5000)}
    assert (ready, len(made)) == (set(made), NUMBER)
    retried = {job for job, _ in client.zscan_iter(f"{KEY}desk:status:retried", count=5000)}
    assert retried == dead
    assert client.exists(f"{KEY}desk:status:pending") == 0
    for shelf in ("task:send", "error:ReadTimeout", "error:ETIMEDOUT", "print:0123456789ab"):
        assert client.zcard(f"{KEY}desk:{shelf}") == NUMBER
    assert client.hlen(f"{KEY}desk") == client.zcard(f"{KEY}dead") == NUMBER
    moved = [int(one[1]) for one in told(client)]
    assert max(moved) <= SLICE


def told(client: redis.Redis) -> list[tuple[str, int]]:
    """The last slices, as events tell of them, each with the number of its jobs."""
    entries = client.xrange(f"{KEY}events")
    fields = [entry[1].get("retried_as_new", "") for entry in entries]
    return [(one, len(one.split())) for one in fields if one]
