"""`faena explain`: the same in words, on one screen, and as data."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from faena import Faena, Limit
from tests.cli.conftest import Cli

app = Faena("explained", "redis://127.0.0.1:1/0")
mail = app.queue("mail", limits=[Limit("1/h")])
TARGET = f"{__name__}:app"
pytestmark = pytest.mark.usefixtures("broker")


@mail.task
async def send(_number: int) -> None: ...


def run(work: Any) -> Any:
    async def inside() -> Any:
        async with app:
            return await work()

    return asyncio.run(inside())


def told(cli: Cli, job: str) -> dict[str, Any]:
    code, out, err = cli("explain", "mail", job, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_a_job_that_waits_shows_why_what_is_next_and_when_it_starts(cli: Cli) -> None:
    async def work() -> str:
        ids = [receipt.id for receipt in await send.enqueue_many([1, 2, 3])]
        await mail.pause(reason="deploy")
        return ids[-1]

    job = run(work)
    _, out, _ = cli("explain", "mail", job)
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert len(lines) < 15, "it fits on a screen"
    assert "held deploy" in lines
    assert "line 2 jobs come first" in lines
    assert "next an operator resumes it, or the hold ends" in lines
    assert any(line.startswith("expected start unknown, not before 20") for line in lines)
    found = told(cli, job)
    assert [one["code"] for one in found["reasons"]] == ["unserved", "held", "line"]
    assert found["next"][1] == "an operator resumes it, or the hold ends"
    assert found["expected_start"]["basis"] == "unknown"
    assert found["expected_start"]["earliest"].startswith("20")
    assert found["expected_at"] is None


def test_a_node_of_a_flow_is_shown_with_the_job_that_it_waits_for(cli: Cli) -> None:
    async def work() -> str:
        flow = app.flow("letters", id="f")
        first = flow.add(send.draft(1), name="first")
        flow.add(send.draft(2), name="second", after=[first])
        await flow.start()
        return "mail.f.2"

    job = run(work)
    code, out, err = cli("explain", "mail", job)
    assert (code, err) == (0, "")
    assert "it is node second of flow mail/f, which waits for 1 of 1 node: first (sent)" in out
    assert "job mail.f.1 is ready" in out
    found = told(cli, job)
    assert (found["state"], found["source"]) == (None, "flow")
    assert found["waits_for"][0]["id"] == "mail.f.1"
    assert found["waits_for"][0]["reasons"]
