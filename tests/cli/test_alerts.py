"""`faena alerts`: what fires, silences, and trials of channels."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from faena import Alerts, Faena, Log, Thresholds, Webhook
from tests.cli.conftest import Cli, listed

app = Faena(
    "alert-counter",
    "redis://127.0.0.1:1/0",
    alerts=Alerts(channels=[Log(), Webhook(name="ops", url="https://127.0.0.1:9/x")]),
)
mail = app.queue("mail", alerts=Thresholds(depth=(1, 3), wait=(None, None), silent=(None, None)))
TARGET = f"{__name__}:app"
pytestmark = pytest.mark.usefixtures("broker")


@mail.task
async def work() -> None: ...


def document(cli: Cli, *args: str) -> Any:
    code, out, err = cli("alerts", *args, "--json")
    assert (code, err) == (0, "")
    return listed(json.loads(out))


def judge() -> None:
    async def enqueue_and_judge() -> None:
        async with app:
            await work.enqueue()
            await (await app.evaluator()).run_once()

    asyncio.run(enqueue_and_judge())


def test_what_fires_is_listed(cli: Cli) -> None:
    assert cli("alerts") == (0, "no alert\n", "")
    judge()
    code, out, err = cli("alerts", TARGET)
    assert (code, err) == (0, "")
    heads, _, row = out.splitlines()
    assert heads.split() == ["severity", "alert", "about", "since", "silenced", "value"]
    assert row.split()[:3] == ["warning", "depth", "mail"]
    assert row.endswith("1 jobs wait (warning from 1, critical from 3)")
    told = document(cli)
    (firing,) = told["firing"]
    assert (firing["rule"], firing["severity"], firing["since"][-1]) == ("depth", "warning", "Z")
    assert told["pending"] == told["silences"] == []


def test_what_fires_is_a_problem_of_the_status_unless_it_is_silenced(cli: Cli) -> None:
    judge()
    told = json.loads(cli("status", TARGET, "--json")[1])
    assert [one["rule"] for one in told["alerts"]] == ["depth"]
    (problem,) = [one for one in told["problems"] if one["about"].startswith("alert ")]
    assert (problem["severity"], problem["about"]) == (1, "alert depth mail")
    assert problem["message"].startswith("warning for ")
    assert problem["message"].endswith(": 1 jobs wait (warning from 1, critical from 3)")
    assert cli("alerts", "silence", "depth", "mail", "--for", "2h", "--reason", "known")[0] == 0
    told = json.loads(cli("status", TARGET, "--json")[1])
    assert [one["is_silenced"] for one in told["alerts"]] == [True]
    assert [one for one in told["problems"] if one["about"].startswith("alert ")] == []


def test_the_history_is_listed(cli: Cli) -> None:
    assert cli("alerts", "history") == (0, "no change\n", "")
    judge()
    (change,) = document(cli, "history")
    assert (change["change"], change["subject"]) == ("firing", "mail")
    assert cli("alerts", "history", "--limit", "1")[1].splitlines()[-1].split()[3] == "firing"


def test_a_silence_begins_is_listed_and_ends(cli: Cli) -> None:
    judge()
    words = ("depth", "mail", "--for", "2h", "--reason", "import", "--by", "ana")
    made = document(cli, "silence", *words)
    assert (made["rule"], made["subject"], made["by"], made["reason"]) == (
        *("depth", "mail", "ana", "import"),
    )
    out = cli("alerts")[1]
    assert "import" in out
    assert "yes" in out
    assert cli("alerts", "unsilence", made["id"]) == (
        *(0, f"silence {made['id']} has ended\n", ""),
    )
    code, _, err = cli("alerts", "unsilence", made["id"])
    assert code != 0
    assert "silence must be a known name" in err


def test_all_alerts_are_silenced_without_a_rule(cli: Cli) -> None:
    made = document(cli, "silence", "--for", "1m", "--reason", "night")
    assert (made["rule"], made["subject"]) == (None, None)
    made = document(cli, "silence", "*", "mail", "--for", "1m", "--reason", "night")
    assert (made["rule"], made["subject"]) == (None, "mail")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("silence", "dept", "--for", "1h", "--reason", "r"), "did you mean 'depth'?"),
        (("silence", "depth", "mial", "--for", "1h", "--reason", "r"), "did you mean 'mail'?"),
        (("silence", "depth", "mail", "x", "--for", "1h", "--reason", "r"), "at most RULE"),
        (("silence", "depth", "--for", "0s", "--reason", "r"), "longer than 0s"),
        (("silence", "depth", "--reason", "r"), "--for"),
        (("test", "opps"), "did you mean 'ops'?"),
    ],
)
def test_what_is_wrong_is_refused_with_the_nearest_word(
    cli: Cli, words: tuple[str, ...], said: str
) -> None:
    code, out, err = cli("alerts", *words)
    assert code != 0
    assert out == ""
    assert said in err


def test_a_channel_is_tried(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli("alerts", "test", "log")[0] == 0
    assert document(cli, "test", "log") == {"channel": "log", "accepted": True}
    code, _, err = cli("alerts", "test", "ops")
    assert code != 0
    assert "set FAENA_ALERTS_OPS_SECRET" in err
    monkeypatch.setenv("FAENA_ALERTS_OPS_SECRET", "x" * 16)
    code, _, err = cli("alerts", "test", "ops")
    assert code != 0
    assert "must be global, got a private or local one" in err
    assert "127.0.0.1" not in err
