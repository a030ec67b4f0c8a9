"""`faena health`: for probes, which look at the exit code, and for people."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from faena import Faena
from tests._support.command import run
from tests._support.valkey import free_port
from tests.cli.conftest import Cli

app = Faena("patient", "redis://127.0.0.1:1/0")
mail = app.queue("mail")
TARGET = f"{__name__}:app"


@pytest.mark.usefixtures("broker")
def test_an_app_that_takes_jobs_in_is_well(cli: Cli) -> None:
    code, out, err = cli("health", "--timeout", "60s")
    assert (code, err) == (0, "")
    assert [line.split()[:2] for line in out.splitlines()[:2]] == [
        ["healthy", "yes"],
        ["served", "no"],
    ]
    told = json.loads(cli("health", "--timeout", "60s", "--json")[1])
    assert (told["is_ok"], told["is_served"], told["problem"]) == (True, False, None)
    assert told["queues"]["mail"]["waiting"] == 0


@pytest.mark.usefixtures("broker")
def test_a_queue_that_nobody_serves_is_no_health_where_that_is_asked_for(cli: Cli) -> None:
    code, _, err = cli("health", "--served", "--timeout", "60s")
    assert (code, err) == (1, "faena: without a worker, or held: mail\n")

    async def pause() -> None:
        async with app:
            await mail.pause()

    asyncio.run(pause())
    assert "pause" in cli("health", "--timeout", "60s")[1]


def test_a_broker_that_is_away_is_told_with_its_cause(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("from faena import Faena\n\napp = Faena('shop')\n")
    url = f"valkey://127.0.0.1:{free_port()}"
    ran = run("health", "shop:app", "--json", cwd=tmp_path, FAENA_URL=url)
    assert ran.code == 1
    assert (ran.document["is_ok"], ran.document["is_reachable"]) == (False, False)
    assert "Connect call failed" in ran.document["problem"]
    assert json.loads(ran.err)["exit_code"] == 1
