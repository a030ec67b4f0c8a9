"""`faena status`: everything on one screen, what is worst first."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from faena import Faena, Retry
from faena.cli.status_reading import lasting
from tests._support.command import Service, run
from tests._support.eventually import eventually
from tests._support.valkey import Server, free_port
from tests.cli.conftest import Cli

app = Faena("watched", "redis://127.0.0.1:1/0")
mail = app.queue("mail", retry=Retry.never())
printing = app.queue("print")
quiet = app.queue("quiet")
afip = app.upstream("afip")
voice = app.feature("ai.voice", fallback="manual")
TARGET = f"{__name__}:app"


@mail.task
async def send(_number: int) -> None: ...


@mail.task
async def fail(_number: int) -> None:
    raise ValueError("no luck")


@printing.task
async def page(_number: int) -> None: ...


def do(*calls: Coroutine[Any, Any, Any]) -> None:
    async def work() -> None:
        async with app:
            for call in calls:
                await call

    asyncio.run(work())


@pytest.mark.usefixtures("broker")
def test_an_app_without_trouble_is_told_to_be_well(cli: Cli) -> None:
    do(send.enqueue(1), app.run_worker(until_empty=True))
    code, out, err = cli("status")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("all is well, ")
    assert [line.split()[:2] for line in lines if line.startswith("mail")] == [["mail", "0"]]
    assert "upstreams  1 of 1 closed" in lines
    assert "features   1 of 1 healthy" in lines
    assert any(line.startswith("broker ") and " ms, " in line for line in lines)


@pytest.mark.usefixtures("broker")
def test_what_is_worst_comes_first(cli: Cli) -> None:
    do(
        send.enqueue_many(range(5)),
        fail.enqueue_many(range(5)),
        app.run_worker([mail], until_empty=True),
        page.enqueue(1),
        app.upstream_control.panic("afip", reason="certificates expired", by="ana", lasting="1h"),
        voice.set("degraded", message="slow", by="ana"),
    )
    told = json.loads(cli("status", "--json")[1])
    assert [(one["severity"], one["about"]) for one in told["problems"]] == [
        (3, "queue print"),
        (3, "upstream afip"),
        (2, "feature ai.voice"),
        (2, "queue mail"),
    ]
    assert told["problems"][0]["message"] == "1 job ready, and no worker"
    assert told["problems"][3]["message"] == "50% of attempts failed in 5 minutes"
    assert [one["queue"] for one in told["queues"]] == ["print", "mail", "quiet"]
    lately = told["queues"][1]["lately"]
    assert (lately["completed"], lately["dead"], lately["error_rate"]) == (5, 5, 0.5)
    assert told["broker"][0]["latency_ms"] > 0
    assert told["broker"][0]["memory_used"] > 0
    out = cli("status")[1]
    assert out.startswith("4 problems, ")
    assert "  queue print: 1 job ready, and no worker\n" in out
    assert "upstreams  0 of 1 closed, not afip\n" in out


@pytest.mark.usefixtures("broker")
def test_a_hold_is_told_with_its_author_and_the_jobs_that_wait(cli: Cli) -> None:
    do(page.enqueue(1), printing.pause(by="ana"))
    out = cli("status")[1]
    assert "  queue print: held by ana: pause; 1 jobs wait\n" in out


def test_a_broker_that_is_away_is_an_error_with_its_cause(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("from faena import Faena\n\napp = Faena('shop')\n")
    ran = run("status", "shop:app", cwd=tmp_path, FAENA_URL=f"valkey://127.0.0.1:{free_port()}")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("faena: could not reach the broker at 127.0.0.1:")


async def test_it_is_shown_again_until_ctrl_c_also_after_an_outage(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from faena import Faena\n\napp = Faena('shop', patience='1s')\napp.queue('mail')\n"
    )
    with Server() as server:
        args = ("status", "shop:app", "--watch", "--every", "50ms", "--json")
        log = tmp_path / "log"
        with Service(*args, log=log, cwd=tmp_path, FAENA_URL=server.url) as service:

            def shown() -> int:
                return (tmp_path / "log.out").read_text().count("\n")

            await eventually(lambda: shown() >= 3)
            server.kill()
            await eventually(lambda: "could not reach the broker" in service.log())
            before = shown()
            await asyncio.to_thread(server.start)
            await eventually(lambda: shown() > before)
            service.send(signal.SIGINT)
            code, out = await service.ended()
    assert code == 0
    assert {tuple(json.loads(line)) for line in out.splitlines()} == {
        (
            *("at", "problems", "queues", "upstreams", "features"),
            *("broker", "missed_schedules", "alerts"),
        )
    }


@pytest.mark.parametrize(
    ("us", "told"),
    [
        (None, None),
        (400_000, "0.4s"),
        (61_000_000, "1m 1s"),
        (3_700_000_000, "1h 1m"),
        (200_000_000_000, "2d 7h"),
    ],
)
def test_ages_have_their_two_largest_units(us: int | None, told: str | None) -> None:
    assert lasting(us) == told
