"""`faena advice` and `faena what-if`: how many slots, and what it would be with others."""

from __future__ import annotations

import asyncio
import json

import pytest

from faena import Faena
from tests.cli.conftest import Cli

app = Faena("planner", "redis://127.0.0.1:1/0")
mail = app.queue("mail", fair=True, concurrency=3)
idle = app.queue("idle")
TARGET = f"{__name__}:app"
pytestmark = pytest.mark.usefixtures("broker")


@mail.task
async def send(card: int) -> int:
    await asyncio.sleep(0.002)
    return card


def fill() -> None:
    async def work() -> None:
        async with app:
            for tenant in ("acme", "zen"):
                await send.enqueue_many([send.draft(one, tenant=tenant) for one in range(60)])
            await app.run_worker([mail], until_empty=True)

    asyncio.run(work())


def test_every_queue_is_advised_with_its_tasks_and_in_words(cli: Cli) -> None:
    fill()
    code, out, err = cli("advice")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split()[:3] == ["queue", "task", "status"]
    assert any(line.split()[:2] == ["mail", "send"] for line in lines)
    assert "  no worker serves the queue now: what follows is for one process with 3 slots" in lines
    items = json.loads(cli("advice", "mail", "--window", "30m", "--json")[1])["items"]
    (told,) = items
    assert (told["queue"], told["count"], told["is_enough"]) == ("mail", 120, True)
    assert told["run"]["count"] == 120
    assert told["run"]["p50_s"] >= 0.002
    assert [task["task"] for task in told["tasks"]] == ["send"]


def test_a_replay_shows_both_waits_and_tenants(cli: Cli) -> None:
    fill()
    code, out, err = cli("what-if", "mail", "--slots", "1", "--weight", "acme=5")
    assert (code, err) == (0, "")
    assert "times longer" in out
    assert "jobs replayed: " in out
    assert out.count("█") > 20
    assert any(line.split()[:1] == ["acme"] for line in out.splitlines())
    told = json.loads(cli("what-if", "mail", "--limit", "1000/s", "--json")[1])
    assert told["before"]["limits"] == []
    assert told["after"]["limits"] == ["1000/s"]
    assert told["measured"]["count"] >= 120


def test_an_idle_queue_is_said_to_be_one(cli: Cli) -> None:
    assert cli("what-if", "idle", "--slots", "2")[1] == "nothing came in the window\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (("advice", "mial"), "no queue 'mial' in app planner; did you mean 'mail'?"),
        (("advice", "mail", "idle"), "unexpected extra argument 'idle'"),
        (("advice", "--window", "soon"), "it must be a duration such as 90s"),
        (("advice", "--window", "31d"), "window must be a duration from 1m to 30d, got '31d'"),
        (("what-if", "mail"), "one of --slots, --limit, --no-limits or --weight must be given"),
        (("what-if", "mail", "--slots", "0"), "it must be a whole number from 1 to 1000000"),
        (("what-if", "mail", "--limit", "fast"), "it must be jobs per time such as 10/s"),
        (("what-if", "mail", "--no-limits", "--limit", "1/s"), "must not be given together"),
        (("what-if", "mail", "--weight", "acme"), "it must be TENANT=NUMBER such as acme=3"),
        (("what-if", "mail", "--weight", "acme=nan"), "weight must be a number from 0.01"),
        (("what-if", "mail", "--weight", "nobody=2"), "tenant 'nobody' had no jobs in the window"),
        (("what-if", "mail", "--slots", "2", "--window", "2d"), "from 1m to 1d, got '2d'"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(
    cli: Cli, line: tuple[str, ...], said: str
) -> None:
    code, out, err = cli(*line)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
