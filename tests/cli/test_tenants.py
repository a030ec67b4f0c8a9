"""`faena tenants`: what operators see of tenants and decide for one of them."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from faena import Faena
from tests.cli.conftest import Cli, listed

app = Faena("tenant-counter", "redis://127.0.0.1:1/0")
mail = app.queue("mail", fair=True)
plain = app.queue("plain", fair=False)
TARGET = f"{__name__}:app"
pytestmark = pytest.mark.usefixtures("broker")


@mail.task
async def send(number: int) -> int:
    return number


def document(cli: Cli, *args: str) -> Any:
    code, out, err = cli("tenants", *args, "--json")
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    return listed(json.loads(out))


def fill(*, is_worked_off: bool = False, **jobs: int) -> None:
    async def work() -> None:
        async with app:
            for tenant, number in jobs.items():
                await send.enqueue_many(range(number), tenant=tenant)
            if is_worked_off:
                await app.run_worker([mail], until_empty=True)

    asyncio.run(work())


def test_tenants_are_shown_busiest_first_with_what_they_were_given(cli: Cli) -> None:
    fill(acme=3, zen=1, is_worked_off=True)
    fill(acme=2, zen=5)
    assert cli("tenants", "hold", "mail", "acme", "--reason", "invoice unpaid")[0] == 0
    code, out, err = cli("tenants", TARGET, "mail")
    assert (code, err) == (0, "")
    heads, _, zen, acme, fairness = out.splitlines()
    assert heads.split()[:3] == ["tenant", "live", "running"]
    assert zen.split()[:3] == ["zen", "5", "0"]
    assert acme.split()[:3] == ["acme", "2", "0"]
    assert acme.rstrip().endswith("held until released: invoice unpaid")
    assert fairness.startswith("fairness of the last minute: ")
    told = document(cli, "mail")
    assert [one["tenant"] for one in told] == ["zen", "acme"]
    assert [one["tenant"] for one in document(cli, "mail", "--limit", "1")] == ["zen"]


def test_shares_tell_who_was_given_what(cli: Cli) -> None:
    fill(acme=3, zen=1, is_worked_off=True)
    code, out, err = cli("shares", "mail", "--json")
    assert (code, err) == (0, "")
    minutes = json.loads(out)["items"]
    assert len(minutes) == 2
    # of this minute, or of the one that just ended
    acme, zen = next(minute["tenants"] for minute in minutes if minute["tenants"])
    assert (acme["tenant"], acme["given"], acme["share"]) == ("acme", 3.0, 0.75)
    assert (zen["tenant"], zen["given"], zen["kept_back_s"]) == ("zen", 1.0, 0.0)
    assert acme["mean_wait_s"] >= 0
    code, out, _ = cli("shares", TARGET, "mail", "--minutes", "0")
    assert code == 0
    assert "still running: " in out


def test_one_tenant_is_shown_with_everything_decided_for_it(cli: Cli) -> None:
    args = ("--limit", "5/s", "--limit", "100/min", "--weight", "2.5", "--max-running", "3")
    told = document(cli, "set", "mail", "acme", *args, "--size", "9", "--for", "1h", "--by", "ana")
    assert told["limits"] == ["5/s", "100/min"]
    assert (told["weight"], told["max_running"], told["size"]) == (2.5, 3, 9)
    lasting = datetime.fromisoformat(told["ends_at"]) - datetime.fromisoformat(told["at"])
    assert (told["by"], lasting) == ("ana", timedelta(hours=1))
    assert document(cli, "mail", "acme") == told
    code, out, _ = cli("tenants", "mail", "acme")
    assert code == 0
    shown = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert shown["limits"].strip() == "5/s, 100/min"
    assert shown["weight"].strip() == "2.5"
    assert shown["by"].strip() == "ana"


def test_what_keeps_a_tenant_s_jobs_from_starting_is_named(cli: Cli) -> None:
    fill(acme=2)
    assert document(cli, "mail", "acme")["gates"] == []
    told = document(cli, "hold", "mail", "acme", "--reason", "invoice unpaid")
    (gate,) = told["gates"]
    assert (gate["name"], gate["detail"], gate["until"]) == ("tenant_held", "invoice unpaid", None)
    out = cli("tenants", "mail", "acme")[1]
    assert "kept back by" in out
    assert "tenant_held: invoice unpaid" in out


def test_a_tenant_that_nobody_has_heard_of_is_told_as_such(cli: Cli) -> None:
    fill(acme=1, zen=1, is_worked_off=True)
    fill(live=1)
    said = "no job of this tenant is waiting or running"
    for words in (("hold", "mail", "acmee"), ("show", "mail", "acmee"), ("mail", "acmee")):
        code, out, _ = cli("tenants", *words)
        assert (code, said in out) == (0, True)
    for tenant in ("acme", "live"):
        assert said not in cli("tenants", "mail", tenant)[1]


def test_settings_are_dropped_lifted_and_reset(cli: Cli) -> None:
    document(cli, "set", "mail", "acme", "--limit", "5/s", "--weight", "2")
    told = document(cli, "set", "mail", "acme", "--drop", "weight", "--no-limits")
    assert (told["weight"], told["limits"]) == (None, [])
    assert document(cli, "hold", "mail", "acme", "--for", "5m")["held_until"].endswith("Z")
    assert document(cli, "hold", "mail", "acme")["is_held"] is True
    told = document(cli, "release", "mail", "acme")
    assert (told["held_until"], told["limits"], told["ended"]) == (None, [], ["held"])
    assert cli("tenants", "release", "mail", "acme")[1].startswith("ended  nothing\n")
    document(cli, "hold", "mail", "acme", "--reason", "unpaid bill")
    told = cli("tenants", "reset", TARGET, "mail", "acme")[1]
    assert "limits none; held until released: unpaid bill" in told.splitlines()[0]
    assert document(cli, "reset", TARGET, "mail", "acme")["limits"] is None
    assert document(cli, "mail") == []


def test_the_jobs_without_a_tenant_have_an_empty_name(cli: Cli) -> None:
    assert document(cli, "hold", "mail", "")["tenant"] is None
    assert "(no tenant)" in cli("tenants", "mail", "")[1]


WRONG: dict[tuple[str, ...], tuple[int, str]] = {
    ("plain",): (2, "queue plain must have lanes for tenants: declare it without fair=False"),
    ("mial",): (2, "no queue 'mial' in app tenant-counter; did you mean 'mail'?"),
    (): (2, "QUEUE must be given"),
    ("mail", "a", "b"): (2, "unexpected extra argument 'b'"),
    ("mail", "a b"): (2, "tenant must be 1 to 128 printable characters without spaces"),
    ("hold", "mail"): (2, "TENANT must be given"),
    ("set", "mail", "acme"): (2, "give at least one setting, such as --weight 2"),
    ("set", "mail", "acme", "--weight", "0"): (2, "weight must be a number from 0.01 to 1000"),
    ("set", "mail", "acme", "--limit", "often"): (2, "must be jobs per time such as 10/s"),
    ("set", "mail", "acme", "--limit", "none"): (2, "; --no-limits sets none, got 'none'"),
    ("set", "mail", "acme", "--limit", "9/s", "--no-limits"): (2, "must not both"),
    ("set", "mail", "acme", "--size", "1", "--drop", "size"): (2, "size must be set or dropped"),
    ("set", "mail", "acme", "--limit", "9/s", "--limit", "5/min"): (2, "9/s can never be reached"),
    ("hold", "mail", "acme", "--for", "5x"): (2, "must be a duration such as 90s, 5m"),
    ("hold", "mail", "acme", "--reason", ""): (2, "reason must be 1 to 200 printable"),
}


@pytest.mark.parametrize("args", WRONG, ids=" ".join)
def test_a_wrong_command_is_one_line_and_changes_nothing(cli: Cli, args: tuple[str, ...]) -> None:
    code, message = WRONG[args]
    got, out, err = cli("tenants", *args)
    assert (got, out) == (code, "")
    assert err.startswith("faena: ")
    assert message in err
    assert err.count("\n") == 1
    assert document(cli, "mail") == []


@pytest.mark.parametrize("command", ["", "show", "set", "hold", "release", "reset"])
def test_help_ends_with_an_example(cli: Cli, command: str) -> None:
    code, out, err = cli("tenants", *command.split(), "--help")
    assert (code, err) == (0, "")
    assert f"faena tenants {command}" in out.partition("Example:")[2]
    assert "--json" in out
