"""Commands that show something change nothing on the server."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

import pytest

from faena import Faena
from faena.cli import session
from tests._support.valkey import Server
from tests.cli.conftest import Cli

app = Faena("onlooker", "redis://127.0.0.1:1/0")
spread = app.queue("spread", shards=2)
unused = app.queue("unused", shards=2)
TARGET = f"{__name__}:app"
Capture = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("broker")

SHOWING = (
    ("queues",),
    ("workers",),
    ("tasks",),
    ("tenants", "spread"),
    ("tenants", "spread", "acme"),
    ("shares", "spread"),
    ("shards",),
    ("jobs", "spread", "--state", "completed"),
    ("explain", "spread", "done"),
    ("job", "spread", "done"),
    ("configure", "spread"),
    ("configure", "unused"),
    ("schedules",),
    ("flow", "list"),
    ("groups",),
    ("dlq", "list"),
    ("dlq", "groups"),
    ("dlq", "stats"),
    ("dlq", "redrives", "spread"),
    ("advice",),
    ("what-if", "spread", "--slots", "8"),
    ("audit",),
)


@spread.task
async def send(number: int) -> int:
    return number


async def seed() -> None:
    async with app:
        await send.enqueue(1, tenant="acme", id="done")
        await app.run_worker([spread], until_empty=True)
        assert (await spread.shards()).shards == 2
        assert (await spread.reshard(1)).shards == 1


def everything(server: Server) -> dict[bytes, bytes | None]:
    with server.client() as client:
        return {name: client.dump(name) for name in client.scan_iter()}


def test_what_only_shows_changes_nothing(cli: Cli, server: Server) -> None:
    asyncio.run(seed())
    before = everything(server)
    for words in SHOWING:
        code, _, err = cli(*words)
        assert code == 0, err
        assert everything(server) == before, words


def test_the_number_of_an_operator_stays_until_it_is_reset(cli: Cli) -> None:
    asyncio.run(seed())
    asyncio.run(produce())
    advice = "code declares 2: `faena reset spread shards` uses that"
    assert advice in cli("shards", "spread")[1]
    assert asyncio.run(number()) == 1
    assert cli("reset", "spread", "shards")[0] == 0
    assert advice not in cli("shards", "spread")[1]
    assert asyncio.run(number()) == 1
    asyncio.run(produce())
    assert asyncio.run(number()) == 2


async def produce() -> None:
    async with app:
        await send.enqueue(1, tenant="acme")


async def number() -> int:
    async with app:
        return (await spread.shards()).shards


def test_a_number_below_that_of_code_says_who_would_decide_again(cli: Cli) -> None:
    asyncio.run(seed())
    assert cli("reshard", "spread", "2")[1] == "spread has 2 shards and has moved\n"
    assert cli("reshard", "spread", "1")[1] == (
        "spread has 1 shard and has moved; code declares 2: `faena reset spread shards` uses that\n"
    )
    assert cli("reshard", "spread", "1")[1] == "spread already had 1 shard: nothing was moved\n"


def test_a_tenant_that_is_where_it_should_be_has_not_moved(cli: Cli) -> None:
    moved = "acme already has a shard of its own: nothing moved"
    assert moved not in cli("tenants", "dedicate", "spread", "acme")[1]
    code, out, _ = cli("tenants", "dedicate", "spread", "acme")
    assert code == 0
    assert moved in out
    assert "shard" in out
    back = "acme already shares the queue: nothing moved"
    assert back not in cli("tenants", "rejoin", "spread", "acme")[1]
    assert back in cli("tenants", "rejoin", "spread", "acme")[1]


async def test_a_program_that_has_only_looked_grows_the_queue_when_it_enqueues(
    server: Server,
) -> None:
    other = Faena("onlooker", server.url)
    queue = other.queue("spread", shards=3)
    await queue.counts()
    await queue.jobs("ready")
    assert (await queue.shards()).shards == 1

    @queue.task(name="send")
    async def send_on(number: int) -> int:
        return number

    await send_on.enqueue(1, tenant="acme")
    assert (await queue.shards()).shards == 3
    await other.close()


def test_a_list_of_nothing_says_what_there_is_none_of(cli: Cli) -> None:
    assert cli("flow", "list")[1] == "no running flow; --ended lists the others\n"
    assert cli("flow", "list", "--ended")[1] == "no recently ended flow\n"
    assert cli("groups")[1].startswith("no open group; ")
    assert cli("tenants", "spread")[1].startswith("no tenant has jobs or ")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_an_embedded_broker_is_told_in_one_line(
    is_terminal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    for name in ("FAENA_URL", "REDIS_URL", "REDIS_HOST", "REDIS_PORT", "FAENA_ENV"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    own = Faena("own", directory=tmp_path / "broker")
    heard = list[str]()
    handler = logging.Handler()
    handler.emit = lambda record: heard.append(record.getMessage())
    monkeypatch.setattr(logging.getLogger("faena"), "handlers", [handler])
    session.run(own, own.queue("q").counts)
    said = [*heard, *capsys.readouterr().err.splitlines()]
    assert len(said) == 1
    assert "an embedded Valkey in" in said[0]
