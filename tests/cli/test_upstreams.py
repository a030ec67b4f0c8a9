"""`faena upstreams`: what operators see of upstreams, and panics."""

from __future__ import annotations

import asyncio
import json
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from faena import Breaker, Budget, Faena, Price
from faena.cli import explain, output
from faena.engine.calls import resilience
from faena.engine.calls.upstreams import UpstreamView
from faena.inspection.explanation import Explanation
from faena.inspection.gate import Gate
from faena.resilience.upstream_options import UpstreamOptions
from faena.states import State
from tests.cli.conftest import Cli, listed

app = Faena("upstream-counter", "redis://127.0.0.1:1/0")
mail = app.queue("mail")
invoices = app.queue("invoices")
afip = app.upstream("afip", limits=["60/min", "1000/h"], breaker=Breaker(volume=1, open="10m"))
ai = app.upstream("ai", prices=[Price("call", "1500 USD")], budgets=[Budget("2000 USD")])
brief = app.upstream("brief", breaker=Breaker(volume=1, open="100ms"))
own = Breaker(volume=1, open="10m", per="tenant")
mp = app.upstream("mp", breaker=own, tenant_limits=["2/s"])


@invoices.task(upstreams=[afip])
async def request(_number: int) -> None: ...


TARGET = f"{__name__}:app"
pytestmark = pytest.mark.usefixtures("broker")


def document(cli: Cli, *args: str) -> Any:
    code, out, err = cli("upstreams", *args, "--json")
    assert (code, err) == (0, "")
    return listed(json.loads(out))


def fail(upstream: Any = afip, tenant: str | None = None) -> None:
    async def work() -> None:
        async with app:
            with pytest.raises(ConnectionRefusedError):
                async with upstream.call(tenant=tenant):
                    raise ConnectionRefusedError("down")
            await (await app.runtime()).gate.flush()

    asyncio.run(work())


def test_all_are_listed(cli: Cli) -> None:
    fail()
    code, out, err = cli("upstreams", TARGET)
    assert (code, err) == (0, "")
    heads, _, first, _, _, second = out.splitlines()
    assert heads.split()[:3] == ["upstream", "state", "failed"]
    assert first.split()[:5] == ["afip", "open", "1", "of", "1"]
    assert "1 of 60/min, 1 of 1000/h" in first
    assert second.split()[:3] == ["mp", "per", "tenant"]
    told = document(cli)
    assert [one["name"] for one in told] == ["afip", "ai", "brief", "mp"]
    assert (told[0]["error_rate"], told[0]["limits"][0]["used"]) == (1.0, 1)
    assert told[0]["next_probe_at"].endswith("Z")
    assert told[0]["opens_at"] == told[0]["next_probe_at"]


def test_the_list_fits_a_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    fail()
    monkeypatch.setattr(output, "terminal_width", lambda: 80)
    cli("upstreams", "panic", "afip", "--reason", "r" * 200)
    code, out, _ = cli("upstreams")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert "no room for" in out


def test_explain_tells_the_same_of_an_upstream_and_a_start_not_before_the_probe(cli: Cli) -> None:
    async def work() -> str:
        async with app:
            receipt = await request.enqueue(1)
            engine = (await app.runtime()).engine
            await engine.hold("invoices", "upstream afip", 600_000_000, "ana")
            return receipt.id

    fail()
    job = asyncio.run(work())
    code, out, err = cli("explain", "invoices", job, "--json")
    assert (code, err) == (0, "")
    told, listed_ = json.loads(out), document(cli, "show", "afip")
    assert told["upstreams"][0].keys() == listed_.keys()
    assert told["upstreams"][0]["opens_at"] == listed_["opens_at"]
    assert told["is_earliest"] == (told["expected_at"] is not None)


def test_a_job_that_waits_for_an_upstream_starts_not_before_the_probe() -> None:
    async def look() -> UpstreamView:
        async with app:
            return await afip.view()

    gate = Gate("held", "upstream afip", until=5_000_000)
    held = {"state": State.READY, "at": 1, "gates": (gate,), "ahead": 0, "rate": 0.0}
    told = Explanation(id="a", queue="invoices", upstreams=(asyncio.run(look()),), **held)
    console = Console(file=StringIO(), width=200)
    explain._draw(console, told, None)
    drawn = console.file.getvalue()
    assert "expected start not before 1970-01-01 00:00:05 UTC" in " ".join(drawn.split())
    assert not Explanation(id="a", queue="invoices", **held).is_earliest


def test_one_is_shown(cli: Cli) -> None:
    fail()
    code, out, err = cli("upstreams", "show", "afip")
    assert (code, err) == (0, "")
    lines = [line.rstrip() for line in out.splitlines()]
    told = {line.split("  ")[0].strip(): line for line in lines}
    assert told["breaker"].endswith("open")
    assert told["failed"].endswith("1 of 1 calls")
    assert "limit" in told
    assert "next probe" in told


def test_budgets_are_shown_with_their_use(cli: Cli) -> None:
    async def call() -> None:
        async with app:
            async with ai.call():
                pass
            await (await app.runtime()).gate.flush()

    asyncio.run(call())
    code, out, err = cli("upstreams", "show", "ai")
    assert (code, err) == (0, "")
    heads, _, budget = out.splitlines()[-3:]
    assert heads.split()[:4] == ["budget", "per", "amount", "spent"]
    assert budget.split()[:7] == ["ai", "day", "2,000.00", "USD", "1,500.00", "USD", "75"]
    assert budget.split()[7:10] == ["%,", "used", "up"]
    (told,) = document(cli, "show", "ai")["budgets"]
    assert told["spent"] == {"micro": 1_500 * 10**6, "currency": "USD", "text": "1500.00 USD"}
    assert (told["left"]["micro"], told["is_used_up"]) == (500 * 10**6, True)


@pytest.mark.parametrize("command", [("upstreams", "show", "ai"), ("budgets",)])
def test_on_a_narrow_terminal_it_is_seen_that_a_budget_is_used_up(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    async def call() -> None:
        async with app:
            async with ai.call():
                pass
            await (await app.runtime()).gate.flush()

    asyncio.run(call())
    monkeypatch.setattr(output, "terminal_width", lambda: 80)
    code, out, err = cli(*command)
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    assert "75 %, used up" in out


def test_a_probe_that_is_due_comes_with_the_next_call(cli: Cli) -> None:
    fail(brief)
    while not (told := document(cli, "show", "brief"))["is_probe_due"]:
        assert told["state"] == "open"
    assert told["next_probe_at"].endswith("Z"), "the instant from which on it is due"
    _, out, _ = cli("upstreams")
    (line,) = [one for one in out.splitlines() if one.startswith("brief")]
    assert "with the next call" in line
    assert "with the next call" in cli("upstreams", "show", "brief")[1]


def test_tenants_in_trouble_are_shown(cli: Cli) -> None:
    fail(mp, "acme")
    _, out, _ = cli("upstreams", "show", "mp")
    assert "closed, one per tenant" in out
    assert out.splitlines()[-1].split()[:2] == ["acme", "open"]
    assert "2/s for each tenant" in out
    (line,) = [one for one in cli("upstreams")[1].splitlines() if one.startswith("mp")]
    assert ("per tenant" in line, "1 tenant" in line, "0 of 0" in line) == (True, True, False)
    own = document(cli, "show", "mp", "--tenant", "acme")
    assert (own["state"], own["tenant"], own["failed"]) == ("open", "acme", 1)


def test_a_panic_begins_and_ends(cli: Cli) -> None:
    code, out, _ = cli("upstreams", "panic", "afip", "--reason", "no keys", "--by", "ana")
    assert code == 0
    assert "no keys" in out
    assert "when an operator ends it" in out
    told = document(cli, "panic", "afip", "--reason", "no keys", "--for", "1h", "--by", "leo")
    assert (told["panic"]["by"], told["panic"]["reason"]) == ("leo", "no keys")
    assert told["panic"]["until"].endswith("Z")
    assert cli("upstreams", "resume", "afip")[:2] == (0, "afip is no longer in panic\n")
    assert cli("upstreams", "resume", "afip")[:2] == (0, "afip was not in panic\n")
    assert document(cli, "resume", "afip") == {"upstream": "afip", "resumed": False}


def test_one_that_no_program_declares_is_forgotten(cli: Cli) -> None:
    async def declare() -> None:
        async with app:
            engine = (await app.runtime()).engine
            await resilience.declare(engine, {"old": UpstreamOptions().settings()})

    asyncio.run(declare())
    assert "old" in [one["name"] for one in document(cli)]
    assert cli("upstreams", "forget", "old", "--by", "ana")[:2] == (0, "old is forgotten\n")
    assert "old" not in [one["name"] for one in document(cli)]
    _, out, _ = cli("events", "--since", "start", "--limit", "1")
    assert out.rstrip().endswith("upstream_forgotten old by ana")


def test_events_are_followed(cli: Cli) -> None:
    cli("upstreams", "panic", "afip", "--reason", "no keys", "--by", "ana")
    code, out, _ = cli("events", "--since", "start", "--limit", "1")
    assert code == 0
    assert out.rstrip().endswith("upstream_panic afip by ana (no keys)")
    _, out, _ = cli("events", "--since", "start", "--limit", "1", "--json")
    told = json.loads(out)
    assert (told["value"], told["reason"], told["queue"]) == ("afip", "no keys", "")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("show",), "NAME must be given"),
        (("show", "affip"), "did you mean 'afip'"),
        (("panic", "afip"), "missing option '--reason'"),
        (("panic", "afip", "--reason", " "), "reason must be 1 to 200 printable characters"),
        (("panic", "afip", "--reason", "x", "--for", "0s"), "longer than 0s"),
        (("panic", "affip", "--reason", "x"), "upstream must be one that a program has declared"),
        (("forget", "old"), "upstream must be one that a program has declared"),
        (("forget", "afip"), "remove app.upstream('afip') from the code first"),
        (("resum", "afip"), "did you mean 'resume'"),
        (("show", "mp", "--tenant", "a b"), "tenant must be"),
    ],
)
def test_what_makes_no_sense_is_refused(cli: Cli, args: tuple[str, ...], words: str) -> None:
    code, out, err = cli("upstreams", *args)
    assert (code, out) == (2, "")
    assert words in err
