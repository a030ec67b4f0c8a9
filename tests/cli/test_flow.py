"""`faena flow`: looking at flows, calling them off, running them again."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from faena import Discard, Faena, Retry
from tests.cli.conftest import Cli, listed

app = Faena("flow-counter", "redis://127.0.0.1:1/0")
mail = app.queue("mail", retry=Retry.never())
plain = app.queue("plain")
TARGET = f"{__name__}:app"
pytestmark = pytest.mark.usefixtures("broker")
failing = {"b"}


@mail.task
async def send(to: str) -> str:
    if to in failing:
        raise Discard(f"{to} is unknown")
    return to


def begin(*names: str, runs: bool = False) -> str:
    async def work() -> str:
        async with app:
            flow = await app.chain(*(send.draft(name) for name in names), name="letters").start()
            if runs:
                await app.run_worker(until_empty=True)
            return flow.id

    return asyncio.run(work())


def document(cli: Cli, *args: str) -> Any:
    code, out, _ = cli(*args, "--json")
    assert code == 0
    return listed(json.loads(out))


def test_flows_are_listed_and_shown(cli: Cli) -> None:
    live, over = begin("a", "c"), begin("a", "b", "c", runs=True)
    assert [one["id"] for one in document(cli, "flow", "list", "--ended", "mail")] == [over, live]
    assert document(cli, "flow", "list") == []
    shown = document(cli, "flow", "show", over)
    assert (shown["state"], shown["left"]) == ("failed", 0)
    assert [node["state"] for node in shown["nodes"]] == ["completed", "dead", "skipped"]
    assert (shown["progress"], shown["counts"]) == (1.0, {"completed": 1, "dead": 1, "skipped": 1})
    words = [node["outcome"] for node in shown["nodes"]]
    assert (words[0], words[1]["name"], words[1]["message"]) == (None, "Discard", "b is unknown")
    code, out, _ = cli("flow", "show", over)
    assert code == 0
    assert " Discard: b is unknown" in out
    assert "{" not in out
    assert "3 of 3" in out
    assert "skipped" in out
    code, out, _ = cli("flow", "list", "--ended")
    assert code == 0
    assert out.splitlines()[2].split()[:4] == [over, "letters", "failed", "3/3"]


def test_a_flow_is_called_off_and_run_again(cli: Cli) -> None:
    flow = begin("a", "c")
    assert cli("flow", "cancel", flow) == (0, f"{flow} is cancelled\n", "")
    asyncio.run(_work())
    assert document(cli, "flow", "show", flow)["state"] == "cancelled"
    assert cli("flow", "rerun", flow) == (0, f"{flow} runs again\n", "")
    asyncio.run(_work())
    shown = document(cli, "flow", "show", flow)
    assert (shown["state"], shown["left"]) == ("completed", 0)
    assert [node["outcome"] for node in shown["nodes"]] == [None, None]
    shown = document(cli, "flow", "show", flow, "--results")
    assert [node["outcome"] for node in shown["nodes"]] == ["a", "c"]
    assert '"a"' in cli("flow", "show", flow, "--results")[1]


def test_what_a_flow_refuses_is_told_of_the_flow(cli: Cli) -> None:
    flow = begin("a", "b", runs=True)
    assert cli("flow", "cancel", flow) == (
        *(1, ""),
        f"faena: cannot cancel flow {flow}: it is failed; `faena flow show` shows it\n",
    )


async def _work() -> None:
    async with app:
        await app.run_worker(until_empty=True)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("show", "nonsense"), "flow must be given as queue/id"),
        (("show", "nobody/x"), "no queue 'nobody' in app flow-counter"),
        (("show", "mail/x"), "; `faena flow list` lists running flows"),
        (("shwo", "mail/x"), "no command 'shwo'; did you mean 'show'?"),
        (("cancel", "mail/x"), "no flow mail/x"),
        (("show",), "FLOW must be given"),
        (("list", "nobody"), "no queue 'nobody'"),
    ],
)
def test_mistakes_are_one_line_and_an_exit_code(cli: Cli, args: tuple[str, ...], said: str) -> None:
    code, out, err = cli("flow", *args)
    assert code in {1, 2}
    assert out == ""
    assert err.count("\n") == 1
    assert said in err
