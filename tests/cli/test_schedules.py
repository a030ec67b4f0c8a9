"""`faena schedules`: list, look at and change them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from faena import Faena
from tests._support.valkey import Server
from tests.cli.conftest import Cli, listed

app = Faena("schedule-counter", "redis://127.0.0.1:1/0")
mail = app.queue("mail")
TARGET = f"{__name__}:app"
EVERY = ("--every", "1h")
SEND = ("--task", "mail/send", "--payload", "7")


@mail.task
async def send(number: int) -> int:
    return number


@app.cron("0 2 * * *", tz="Europe/Madrid", overlap="skip")
async def nightly() -> None: ...


app.schedule("hourly", send, 5, every="1h", jitter="1m")


@pytest.fixture(autouse=True)
def _broker(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with server.client() as client:
        client.flushall()
    monkeypatch.setenv("FAENA_APP", TARGET)
    with app.override(url=server.url):
        do(app.schedules.declare)
        yield


def do(work: Callable[..., Any], *args: Any, **options: Any) -> Any:
    async def within() -> Any:
        async with app:
            return await work(*args, **options)

    return asyncio.run(within())


def document(cli: Cli, *args: str) -> Any:
    code, out, err = cli("schedules", *args, "--json")
    assert (code, err) == (0, "")
    return listed(json.loads(out))


def test_all_schedules_are_listed_the_next_one_first(cli: Cli) -> None:
    code, out, _ = cli("schedules")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[2:]] == ["hourly", "nightly"]
    assert "0 2 * * * Europe/Madrid" in out
    assert [one["name"] for one in document(cli, "list", TARGET)] == ["hourly", "nightly"]


def test_one_is_shown_with_its_next_instants(cli: Cli) -> None:
    code, out, _ = cli("schedules", "show", "nightly")
    assert code == 0
    assert out.count(":00:00 Europe/Madrid  (") == out.count(":00:00 UTC)") == 5
    assert out.count(" 02:00:00 Europe/Madrid") == 5
    shown = document(cli, "show", "hourly", "--next", "3")
    first, second, third = (datetime.fromisoformat(one["at"]) for one in shown["coming"])
    assert third - second == second - first == timedelta(hours=1)
    assert (shown["next_at"], shown["is_declared"]) == (shown["coming"][0]["at"], True)
    nightly = document(cli, "show", "nightly")
    assert nightly["next_local"][10:19] == "T02:00:00"
    local, at = map(datetime.fromisoformat, (nightly["next_local"], nightly["next_at"]))
    assert local == at
    assert (shown["terms"]["when"], shown["terms"]["jitter_s"]) == ({"every_s": 3600.0}, 60.0)


def test_it_is_edited_and_reset(cli: Cli) -> None:
    edited = document(
        *(cli, "edit", "nightly", "--every", "30m", "--count", "4", "--by", "ana"),
        *("--tenant", "acme", "--start", "2026-01-01", "--priority", "low", "--missed", "all(3)"),
    )
    assert edited["when"] == "every 30m"
    assert (edited["terms"]["count"], edited["terms"]["priority"]) == (4, 20)
    assert edited["edits"]["when"]["by"] == "ana"
    code, out, _ = cli("schedules", "show", "nightly")
    assert code == 0
    assert "edited count" in out
    left = document(cli, "edit", "nightly", "--count", "none", "--tenant", "none")
    assert (left["terms"]["count"], left["terms"]["tenant"]) == (None, None)
    assert set(document(cli, "reset", "nightly", "cron", "count")["edits"]) == {
        *("tenant", "start", "priority", "missed"),
    }
    assert document(cli, "reset", "nightly")["edits"] == {}


def test_a_payload_is_checked_by_the_task(cli: Cli) -> None:
    document(cli, "edit", "hourly", "--payload", "7")
    assert document(cli, "show", "hourly", "--payload")["terms"]["payload"] == 7
    code, out, err = cli("schedules", "edit", "hourly", "--payload", '"text"')
    assert (code, out) == (2, "")
    assert "payload of task send" in err or "int" in err
    assert cli("schedules", "edit", "hourly", "--payload", "{")[0] == 2


def test_what_jobs_carry_is_shown_on_request_only(cli: Cli) -> None:
    asks = [(), ("show", "hourly"), ("edit", "hourly", "--payload", "4111"), ("pause", "hourly")]
    for ask in [*asks, ("resume", "hourly"), ("reset", "hourly", "count")]:
        found = document(cli, *ask)
        for one in found if isinstance(found, list) else [found]:
            assert "payload" not in one["terms"]
        assert "4111" not in cli("schedules", *ask)[1]
    assert "4111" in cli("schedules", "show", "hourly", "--payload")[1]


def test_one_is_created_that_is_in_no_code(cli: Cli) -> None:
    given = ("--task", "mail/send", "--payload", "7", "--tenant", "acme", "--by", "ana")
    bounds = ("--count", "3", "--jitter", "10s", "--overlap", "skip", "--missed", "all(5)")
    zone = ("--cron", "0 9 * * MON", "--tz", "Europe/Madrid", "--start", "2999-01-01")
    made = document(cli, "create", "weekly", *given, *bounds, *zone)
    assert (made["queue"], made["task"], made["when"]) == (
        *("mail", "send"),
        "0 9 * * MON Europe/Madrid",
    )
    assert (made["state"], made["is_declared"], made["since"]["by"]) == ("active", False, "ana")
    terms = document(cli, "show", TARGET, "weekly", "--payload")["terms"]
    wanted = {"payload": 7, "tenant": "acme", "count": 3, "overlap": "skip", "missed": "all(5)"}
    assert {name: terms[name] for name in wanted} == wanted
    code, out, _ = cli("schedules", "create", "soon", "--task", "mail/send", *given[2:4], *EVERY)
    assert (code, "at run time by " in out) == (0, True)
    code, out, err = cli("schedules", "create", "soon", *SEND, *EVERY)
    assert (code, out) == (2, "")
    assert err == ("faena: schedule 'soon' exists already: edit it, or choose another name\n")
    at = ("--at", "2999-01-01T00:00", "--at", "2999-01-02T00:00")
    assert document(cli, "create", "twice", "--task", "scheduler/nightly", *at)["task"] == "nightly"
    assert document(cli, "remove", "twice") == {"removed": "twice"}


def test_what_code_declares_is_not_created_even_before_a_worker_has_started(
    cli: Cli, server: Server
) -> None:
    with server.client() as client:
        client.flushall()
    code, out, err = cli("schedules", "create", "hourly", *SEND, *EVERY)
    assert (code, out) == (2, "")
    assert "declared in code: edit it, or choose another name" in err


def test_it_is_paused_and_resumed(cli: Cli) -> None:
    assert document(cli, "pause", "nightly", "--by", "ana")["state"] == "paused"
    code, out, _ = cli("schedules", "show", "nightly")
    assert (code, "paused by ana at" in out) == (0, True)
    assert document(cli, "resume", "nightly")["state"] == "active"


def test_it_is_run_now(cli: Cli) -> None:
    ran = document(cli, "run", "hourly")
    assert ran["queue"] == "mail"
    assert do(mail.counts)["ready"] == 1
    code, out, _ = cli("schedules", "run", "hourly")
    assert (code, out.startswith("job "), out.endswith(" on queue mail\n")) == (0, True, True)


def test_what_code_declares_no_more_is_shown_and_removed(cli: Cli) -> None:
    do(app.schedules.create, "extra", send, 1, every="1h")
    code, _, err = cli("schedules", "remove", "nightly")
    assert code == 1
    assert err == (
        "faena: schedule nightly is declared in code: pause it, or remove it there first; "
        "`faena schedules pause` pauses it\n"
    )
    kept = app.schedules.declared.pop("hourly")
    try:
        assert "active, not in code" in cli("schedules")[1]
        assert "no longer in code, last at" in cli("schedules", "show", "hourly")[1]
        assert "at run time by " in cli("schedules", "show", "extra")[1]
        assert cli("schedules", "remove", "hourly")[:2] == (0, "schedule hourly was removed\n")
        assert document(cli, "remove", "extra") == {"removed": "extra"}
        assert [one["name"] for one in document(cli)] == ["nightly"]
    finally:
        app.schedules.declared["hourly"] = kept
    assert {one["name"]: one["state"] for one in document(cli)} == {
        "hourly": "not started",
        "nightly": "active",
    }


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("show", "nightli"), 2, "did you mean 'nightly'"),
        (("edit", "nightly", "--cron", "0 0 30 2 *"), 2, "cron must be an expression"),
        (("edit", "nightly", "--tz", "Europe/Madird"), 2, "did you mean 'Europe/Madrid'"),
        (("edit", "nightly", "--every", "often"), 2, "it must be a duration"),
        (("edit", "nightly", "--count", "few"), 2, "count must be a whole number"),
        (("edit", "nightly", "--end", "soon"), 2, "end must be a datetime"),
        (("edit", "nightly", "--at", "2026-13-01"), 2, "at must be a datetime"),
        (("edit", "nightly"), 2, "give at least one change"),
        (("edit", "nightly", "--overlap", "maybe"), 2, "overlap"),
        (("reset", "nightly", "crno"), 2, "did you mean 'cron'"),
        (("create", "hourly", *SEND, *EVERY), 2, "is declared in code"),
        (("create", "new", "--task", "mail/sned", *EVERY), 2, "did you mean 'mail/send'"),
        (("create", "new", "--task", "mail/send", *EVERY), 2, "payload"),
        (
            ("create", "new", "--task", "mail/send", "--payload", '"x"', *EVERY),
            2,
            "payload must be int",
        ),
        (("create", "new", *SEND, "--payload", "{", *EVERY), 2, "--payload must be JSON"),
        (("create", "new", *SEND), 2, "give one of --cron, --every and --at"),
        (
            ("create", "new", *SEND, *EVERY, "--cron", "0 9 * * *"),
            2,
            "give one of --cron, --every and --at",
        ),
        (("create", "new", *SEND, "--at", "2001-01-01"), 2, "must have an instant after"),
        (("create", "new", *SEND, "--cron", "never"), 2, "cron must have 5 fields"),
        (("create", "new", *EVERY), 2, "missing option '--task'"),
        (("create", "a name", *SEND, *EVERY), 2, "schedule name must be"),
        (("create", "new", *SEND, *EVERY, "--by", ""), 2, "by must"),
        (("create", *SEND, *EVERY), 2, "NAME must be given"),
        (("pause",), 2, "NAME must be given"),
        (("pasue", "nightly"), 2, "no command 'pasue'; did you mean 'pause'?"),
        (("nightly",), 2, "no command 'nightly'; valid: create, edit, list, pause"),
        (("list", TARGET, "more"), 2, "unexpected extra argument"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_line_and_changes_nothing(
    cli: Cli, args: tuple[str, ...], code: int, words: str
) -> None:
    before = document(cli)
    got, out, err = cli("schedules", *args)
    assert (got, out) == (code, "")
    assert words in err
    assert err.count("\n") == 1
    assert document(cli) == before
