"""`faena budgets`: how much of budgets is used, and what calls have cost."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from faena import Budget, Faena, Price
from tests._support.valkey import Server
from tests.cli.conftest import Cli, listed

app = Faena("budget-counter", "redis://127.0.0.1:1/0")
ai = app.upstream(
    "ai",
    prices=[Price("call", "0.25 USD")],
    budgets=[Budget("1 USD", soft=0.8), Budget("9 USD", per="month", each_tenant=True)],
)
app.total_budgets([Budget("20 USD", per="month", hard=False)])
later = Faena("budget-counter", "redis://127.0.0.1:1/0")
"""The same program, when it declares nothing any more."""
TARGET = f"{__name__}:app"
pytestmark = pytest.mark.usefixtures("broker")


def document(cli: Cli, *args: str) -> Any:
    code, out, err = cli("budgets", *args, "--json")
    assert (code, err) == (0, "")
    return listed(json.loads(out))


def call(times: int) -> None:
    async def work() -> None:
        async with app:
            for _ in range(times):
                async with ai.call(tenant="acme"):
                    pass
            await (await app.runtime()).gate.flush()

    asyncio.run(work())


def test_all_are_listed(cli: Cli) -> None:
    call(4)
    code, out, err = cli("budgets", TARGET)
    assert (code, err) == (0, "")
    heads, _, day, tenants, total = out.splitlines()
    assert heads.split()[:5] == ["budget", "per", "amount", "spent", "percent"]
    assert day.split()[:8] == ["ai", "day", "1.00", "USD", "1.00", "USD", "100", "%,"]
    assert ("100 %, used up" in day, "hard, soft from 80%" in day) == (True, True)
    assert tenants.startswith("ai @acme  ")
    assert (total.startswith("total USD"), " tells " in total) == (True, True)
    told = document(cli)
    assert [one["upstream"] for one in told] == ["ai", "ai", None]
    assert told[0]["spent"] == {"micro": 10**6, "currency": "USD", "text": "1.00 USD"}
    assert (told[0]["left"]["micro"], told[0]["percent"]) == (0, 100.0)
    assert told[0]["ends_at"].endswith("T00:00:00Z")


def test_the_default_of_top_is_shown(cli: Cli) -> None:
    assert "[default: 10" in cli("budgets", "report", "--help")[1]


def test_a_tenant_may_be_named(cli: Cli) -> None:
    call(1)
    told = document(cli, "--tenant", "bits")
    assert [(one["tenant"], one["spent"]["micro"]) for one in told][1] == ("bits", 0)


def test_costs_are_reported(cli: Cli) -> None:
    call(2)
    code, out, err = cli("budgets", "report")
    assert (code, err) == (0, "")
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    assert out.splitlines()[0].split() == ["month", today[:7]]
    for line in (("ai", "tenant", "acme", "0.50", "USD"), (today, "0.50", "USD")):
        assert list(line) in [one.split() for one in out.splitlines()]
    told = document(cli, "report", "--day", today, "--top", "0")
    half = {"micro": 500_000, "currency": "USD", "text": "0.50 USD"}
    assert (told["period"], told["spent"], told["services"][0]["spent"]) == (today, [half], half)
    assert (told["services"][0]["top_tenants"], told["budgets"][0]["percent"]) == ([], 50.0)
    code, out, _ = cli("budgets", "report", "--month", "2020-02")
    assert (code, "spent  nothing" in out) == (0, True)


def test_total_budgets_are_forgotten(cli: Cli, server: Server) -> None:
    code, _, err = cli("budgets", "forget")
    assert (code, "remove app.total_budgets(…) from the code first" in err) == (2, True)
    call(1)
    with later.override(url=server.url):
        forgotten = cli("budgets", "forget", f"{__name__}:later", "--by", "ana")
        assert forgotten[:2] == (0, "the total budgets are forgotten\n")
        rows = document(cli, "list", f"{__name__}:later")
        assert [one["upstream"] for one in rows] == ["ai", "ai"]
        assert document(cli, "forget", f"{__name__}:later") == {"forgotten": False}


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("report", "--month", "May"), "month must be one such as '2026-11', got 'May'"),
        (("report", "--day", "today"), "day must be a date such as '2026-11-16', got 'today'"),
        (("report", "--top", "101"), "it must be a whole number from 0 to 100, got '101'"),
        (("raise",), "no command 'raise'"),
    ],
)
def test_wrong_words_are_refused(cli: Cli, args: tuple[str, ...], words: str) -> None:
    code, _, err = cli("budgets", *args)
    assert code == 2
    assert words in err
