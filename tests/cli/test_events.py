"""`faena events`: what happens, line by line, until somebody has seen enough."""

from __future__ import annotations

import asyncio
import json
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from faena import Faena
from tests._support.command import Service
from tests._support.eventually import eventually
from tests._support.valkey import Server
from tests.cli.conftest import Cli

app = Faena("teller", "redis://127.0.0.1:1/0")
mail = app.queue("mail")
other = app.queue("other")
TARGET = f"{__name__}:app"
pytestmark = pytest.mark.usefixtures("broker")


@mail.task
async def send(number: int) -> int:
    return number


async def seed() -> str:
    async with app:
        receipt = await send.enqueue(1, tenant="acme")
        await app.run_worker([mail], until_empty=True)
        await mail.pause(reason="deploy", by="ana")
        return receipt.id


def test_what_happened_is_a_line_for_each_event(cli: Cli) -> None:
    job = asyncio.run(seed())
    code, out, err = cli("events", "--since", "start", "--limit", "4")
    assert (code, err) == (0, "")
    told = [line.split(maxsplit=3)[2:] for line in out.splitlines()]
    assert [name for name, _ in told] == ["enqueued", "claimed", "completed", "paused"]
    assert told[0][1] == f"mail/send {job} of acme"
    assert told[3][1] == "mail deploy by ana"


def test_queues_kinds_and_where_to_begin_are_chosen(cli: Cli) -> None:
    asyncio.run(seed())
    words = ("events", "mail", "--kind", "paused", "--kind", "completed", "--json")
    out = cli(*words, "--since", "1h", "--limit", "2")[1]
    done, paused = map(json.loads, out.splitlines())
    assert [done["name"], paused["name"]] == ["completed", "paused"]
    assert (done["task"], done["tenant"], paused["by"]) == ("send", "acme", "ana")
    assert done["at"].endswith("Z")
    (again,) = cli(*words, "--since", done["cursor"], "--limit", "1")[1].splitlines()
    assert json.loads(again) == paused
    early = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    assert cli(*words, "--since", early, "--limit", "2")[1] == out


SHOP = """
from faena import Faena

app = Faena("teller")
mail = app.queue("mail")
"""


async def test_it_follows_until_it_is_interrupted_and_ends_without_a_word(
    tmp_path: Path, server: Server
) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    words = ("events", "shop:app", "--since", "start", "--json")
    with Service(*words, log=tmp_path / "log", cwd=tmp_path, FAENA_URL=server.url) as service:
        async with app:
            await send.enqueue(1)

        async def has_told() -> bool:
            return '"enqueued"' in (tmp_path / "log.out").read_text()

        await eventually(has_told)
        service.send(signal.SIGINT)
        code, _ = await service.ended()
    assert (code, service.log()) == (0, "")
