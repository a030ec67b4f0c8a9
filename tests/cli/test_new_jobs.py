"""`faena enqueue`, `change`, `remove`, `promote --all`: jobs by hand."""

from __future__ import annotations

import asyncio
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from faena import Faena, Limit, Retry
from faena.engine.scripts import Turn
from tests.cli.conftest import Cli, listed

pytestmark = pytest.mark.usefixtures("broker")

app = Faena("hand", "redis://127.0.0.1:1/0")
mail = app.queue("mail.out", retry=Retry.never(), fair=True)
TARGET = f"{__name__}:app"


llm = app.queue("llm", limits=[Limit("5000/min", cost="tokens"), Limit("9/s")])


@llm.task
async def ask() -> None: ...


@mail.task
async def send(card: dict[str, int]) -> int:
    return card["n"]


@mail.task
async def tidy() -> None: ...


def document(cli: Cli, *args: str) -> Any:
    code, out, err = cli(*args, "--json")
    assert (code, err) == (0, "")
    return listed(json.loads(out))


def job(cli: Cli, job_id: str) -> Any:
    return document(cli, "job", "mail.out", job_id, "--payload")


def test_a_job_is_enqueued_with_all_options_and_its_id_is_printed(cli: Cli) -> None:
    args = ("--tenant", "acme", "--key", "k", "--delay", "5m", "--priority", "high", "--id", "j7")
    more = ("--header", "trace=a=b", "--timeout", "90s", "--durability", "memory")
    code, out, err = cli("enqueue", TARGET, "mail.out/send", '{"n": 7}', *args, *more)
    assert (code, out, err) == (0, "j7\n", "")
    seen = job(cli, "j7")
    assert (seen["task"], seen["tenant"], seen["key"], seen["state"]) == (
        *("send", "acme", "k"),
        "delayed",
    )
    assert (seen["payload"], seen["headers"], seen["priority"]) == ({"n": 7}, {"trace": "a=b"}, 5)


def test_a_durability_that_was_not_reached_is_told(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("faena.producing.batcher._DURABLE_WITHIN_S", 0.01)
    code, out, err = cli(*CARD, "--durability", "replicated", "--id=r")
    assert (code, out) == (0, "r\n")
    assert err == (
        "warning: the job is enqueued, but durability replicated(1) was not confirmed in time, "
        "only memory\n"
    )
    told = document(cli, *CARD, "--durability", "replicated")
    assert told["durability"] == "memory"


def test_a_payload_comes_from_a_file_from_standard_input_or_is_none(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "card.json"
    file.write_text('{"n": 18446744073709551615}')
    told = document(cli, "enqueue", "mail.out/send", f"@{file}")
    assert (told["status"], told["queue"], told["task"]) == ("created", "mail.out", "send")
    assert job(cli, told["id"])["payload"] == {"n": 18446744073709551615}
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"n": 3}')))
    assert job(cli, document(cli, "enqueue", "mail.out/send", "-")["id"])["payload"] == {"n": 3}
    assert document(cli, "enqueue", "mail.out/tidy")["status"] == "created"


def test_a_job_waits_for_an_instant_expires_and_takes_the_place_of_another(cli: Cli) -> None:
    args = (*CARD, "--at", "2100-01-01T02:00+02:00", "--replace", "r", "--attempts", "2")
    first = document(cli, *args, "--expires", "2100-01-02T00:00Z")
    assert job(cli, first["id"])["due_at"] == "2100-01-01T00:00:00Z"
    second = document(cli, *args, "--expires", "2100-01-02T00:00Z")
    assert (second["status"], second["replaced"]) == ("created", first["id"])
    kept = document(cli, *SEND, '{"n": 2}', "--id", second["id"], "--on-conflict", "keep")
    assert (kept["id"], kept["is_different"], second["is_different"]) == (second["id"], True, False)
    code, out, err = cli(*args)
    assert (code, err) == (0, f"replaced job {second['id']}\n")
    code, _, err = cli(*SEND, '{"n": 3}', "--id", out.strip(), "--on-conflict", "keep")
    words = "already exists with another task, payload, tenant or key; delayed\n"
    assert (code, err) == (0, words)


def test_a_duplicate_is_told(cli: Cli) -> None:
    args = ("enqueue", "mail.out/send", '{"n": 1}', "--unique", "u")
    first = document(cli, *args, "--unique-mode", "throttle", "--unique-ttl", "1h")
    code, out, err = cli(*args, "--unique-mode", "throttle", "--unique-ttl", "1h")
    assert (code, out, err) == (0, f"{first['id']}\n", "already exists; ready\n")
    code, out, err = cli("enqueue", "mail.out/send", '{"n": 2}', "--id", first["id"], "--json")
    assert (code, out, json.loads(err)["code"]) == (1, "", "job_conflict")


SEND = ("enqueue", "mail.out/send")
CARD = (*SEND, '{"n": 1}')


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("enqueue",), "QUEUE/TASK must be given"),
        (
            ("enqueue", "send"),
            "QUEUE/TASK must be a queue and a task, such as mail/send, got 'send'",
        ),
        (("enqueue", "mail.in/send"), "no queue 'mail.in' in app hand; did you mean 'mail.out'?"),
        (("enqueue", "mail.out/sned"), "no task 'sned' on queue mail.out; did you mean 'send'?"),
        (SEND, "task send needs a payload"),
        (("enqueue", "mail.out/tidy", "1"), "task tidy takes no payload"),
        ((*SEND, "{"), "PAYLOAD must be JSON, @FILE or -"),
        ((*SEND, "@/no/such/file"), "must be a readable file, got '@/no/such/file'"),
        ((*SEND, '{"n": "x"}'), "payload must be dict[str, int]"),
        ((*CARD, "2"), "unexpected extra argument '2'"),
        ((*CARD, "--delay", "soon"), "must be a duration such as 90s"),
        ((*CARD, "--at", "2026-05-01T09:00"), "must be an instant with a time zone, such as"),
        ((*CARD, "--expires", "never"), "must be a duration such as 90s"),
        ((*CARD, "--attempts", "0"), "--attempts"),
        ((*CARD, "--delay", "5m", "--at", "2100-01-01T00:00Z"), "delay and at must not both be"),
        ((*CARD, "--priority", "0"), "priority must be"),
        ((*CARD, "--header", "x"), "--header must be NAME=TEXT, got 'x'"),
        ((*CARD, "--durability", "forever"), "durability must be"),
        ((*CARD, "--unique-ttl", "1h"), "need --unique KEY"),
        ((*CARD, "--unique", "u", "--unique-ttl", "1h"), "--unique-ttl must not be given with"),
        ((*CARD, "--unique", "u", "--unique-mode", "throttle"), "--unique-ttl must be given with"),
        ((*CARD, "--tenant", "a b"), "tenant must be 1 to 128 printable"),
        (("change", "mail.out", "x"), "give --delay, --priority or both"),
        (("change", "mail.out", "x", "--priority", "often"), "priority must be"),
        (("promote", "mail.out"), "give ID or --all, and not both"),
        (("promote", "mail.out", "x", "--all"), "give ID or --all, and not both"),
        (("configure", "mail.out", "max_running"), "must be NAME=VALUE, such as max_running=5"),
        (("configure", "mail.out", "max_runing=5"), "did you mean 'max_running'?"),
        (("configure", "mail.out", "max_running=many"), "max_running must be"),
        (("configure", "mail.out", "lease=30"), "lease must be"),
        (("configure", "mail.out", "limits=often"), "limit must be"),
        (("configure", "mail.out", "backpressure=soft=9 hard=5"), "soft must be less than hard"),
        (("configure", "mail.out", "order=tenant"), "order cannot be changed while the queue runs"),
        (("configure", "mail.out", "shards=2"), "use queue.reshard() or `faena reshard`"),
        (("configure", "mail.out", "limits=10/fortnight"), "windows: s, min, h, day, or a"),
        (("reset", "mail.out", "lmits"), "did you mean 'limits'?"),
        (("groups", "mail.out", "mail.out/x"), "QUEUE/ID must be the only argument"),
        (("pause", "mail.out", "--by", "a b"), "by must be 1 to 128 printable characters"),
    ],
)
def test_what_makes_no_sense_is_one_line_and_changes_nothing(
    cli: Cli, args: tuple[str, ...], words: str
) -> None:
    code, out, err = cli(*args)
    assert (code, out) == (2, ""), err
    assert re.fullmatch(r"faena: [^\n]+\n", err)
    assert words in err
    assert document(cli, "queues")[0]["counts"]["ready"] == 0


def test_a_waiting_job_is_changed(cli: Cli) -> None:
    made = document(cli, *CARD)["id"]
    assert document(cli, "change", "mail.out", made, "--delay", "1h", "--priority", "7") == [
        {"id": made, "outcome": "changed"}
    ]
    seen = job(cli, made)
    assert (seen["state"], seen["priority"]) == ("delayed", 7)


def test_every_delayed_job_is_promoted(cli: Cli) -> None:
    for _ in range(3):
        document(cli, *CARD, "--delay", "1h")
    assert document(cli, "promote", "mail.out", "--all") == {"queue": "mail.out", "promoted": 3}
    assert cli("promote", "mail.out", "--all")[1] == "0 jobs of mail.out promoted\n"
    assert document(cli, "queues")[0]["counts"]["ready"] == 3


def test_a_job_is_removed_for_good(cli: Cli) -> None:
    made = document(cli, *CARD)["id"]
    code, _, err = cli("remove", "mail.out", made)
    assert (code, err) == (
        1,
        "faena: nothing was done: no terminal for the confirmation; use --yes\n",
    )
    code, out, err = cli("remove", "mail.out", made, "nobody", "--yes", "--json")
    assert [one["outcome"] for one in json.loads(out)["items"]] == ["removed", "refused"]
    assert (code, json.loads(err)["code"]) == (1, "job_not_found")
    assert cli("job", "mail.out", made)[0] == 1


def test_settings_are_changed_in_the_words_of_the_code_and_reset(cli: Cli) -> None:
    args = ("max_running=5", "limits=10/s,100/min", "lease=1m", "retain=completed=1h")
    told = document(cli, "configure", TARGET, "mail.out", *args, "learning=on")
    settings = told["settings"]
    assert (settings["max_running"], settings["lease_s"]) == (5, 60.0)
    assert settings["retain"]["completed_s"] == 3600.0
    assert (settings["limits"], settings["learning"]) == (["10/s", "100/min"], True)
    assert set(told["edited"]) == {"learning", "lease", "limits", "max_running", "retain"}
    code, out, _ = cli("configure", "mail.out", "max_running=none")
    assert code == 0
    shown = {line.split()[0]: line.split(maxsplit=1)[1].strip() for line in out.splitlines()}
    assert (shown["max_running"], shown["lease"]) == ("none  (edited)", "1m  (edited)")
    assert shown["limits"] == "10/s, 100/min  (edited)"
    told = document(cli, "configure", "mail.out", "backpressure=soft=10 hard=50")
    assert told["settings"]["backpressure"]["max_delay_s"] == 5.0
    told = document(cli, "reset", "mail.out", "lease")
    assert (told["settings"]["lease_s"], "lease" in told["edited"]) == (30.0, False)
    assert document(cli, "reset", "mail.out")["edited"] == []


def test_tasks_are_shown_with_their_options(cli: Cli) -> None:
    first, second = document(cli, "tasks", "mail.out")
    assert (first["task"], first["payload"], first["attempts"]) == ("send", "dict[str, int]", 1)
    assert (second["task"], second["payload"], second["run"]) == ("tidy", None, "async")
    assert "dict[str, int]" in cli("tasks")[1]


def test_who_decides_is_the_user_at_the_host_or_the_environment_says(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("pause", "mail.out")
    (hold,) = document(cli, "queues")[0]["holds"]
    assert "@" in hold["by"]
    monkeypatch.setenv("FAENA_BY", "ana")
    cli("pause", "mail.out", "--reason", "deploy")
    assert document(cli, "queues")[0]["holds"][1]["by"] == "ana"
    monkeypatch.setenv("FAENA_BY", "a b")
    code, _, err = cli("pause", "mail.out")
    assert code == 2
    assert "FAENA_BY" in err


def test_workers_are_shown_with_their_queues_and_what_they_run(cli: Cli) -> None:
    assert cli("workers")[1] == "no worker runs\n"
    made = document(cli, *CARD, "--tenant", "acme")["id"]

    async def claim() -> None:
        async with app:
            turn = Turn("call00000001", 1, is_sweep=True, about="17 0.1.0 faena_0 box")
            engine = (await app.runtime()).engine
            assert (await engine.exchange("mail.out", "w", "worker-1", turn)).claimed

    asyncio.run(claim())
    (seen,) = document(cli, "workers")
    assert (seen["worker"], seen["queues"]) == ("worker-1", ["mail.out"])
    (running,) = seen["jobs"]
    assert (running["id"], running["task"], running["tenant"]) == (made, "send", "acme")
    assert seen["busy_since"] == seen["since"] == running["started_at"]
    assert (seen["host"], seen["pid"], seen["version"], seen["running"]) == ("box", 17, "0.1.0", 1)
    assert f"mail.out/send {made}" in cli("workers", "mail.out")[1]
    assert seen["listed_until"] > seen["since"]
    assert "listed until" in cli("workers")[1]


def test_a_worker_that_runs_more_than_was_looked_at_says_so(cli: Cli) -> None:
    for _ in range(3):
        document(cli, *CARD)

    async def claim() -> None:
        async with app:
            engine = (await app.runtime()).engine
            turn = Turn("call00000001", 3, is_sweep=True)
            assert len((await engine.exchange("mail.out", "w", "worker-1", turn)).claimed) == 3

    asyncio.run(claim())
    (seen,) = document(cli, "workers", "--limit", "2")
    assert (seen["running"], seen["is_cut"]) == (2, True)
    assert " 2+ " in cli("workers", "--limit", "2")[1]
    (seen,) = document(cli, "workers")
    assert (seen["running"], seen["is_cut"]) == (3, False)


def test_groups_under_way_are_listed_and_one_is_shown(cli: Cli) -> None:
    async def begin() -> str:
        async with app, app.group(on_complete=tidy.draft()) as group:
            await group.enqueue_many(send, [{"n": 1}, {"n": 2}])
            return group.id

    name = asyncio.run(begin())
    (seen,) = document(cli, "groups")
    assert (seen["id"], seen["total"], seen["callbacks"]) == (name, 2, {"complete": "waiting"})
    assert document(cli, "groups", name) == seen
    assert name in cli("groups", "mail.out")[1]
    assert "on complete" in cli("groups", name)[1]
    assert document(cli, "groups", "--ended") == []
    code, _, err = cli("groups", "mail.out/nobody")
    assert (code, "`faena groups` lists open groups" in err) == (1, True)


def test_groups_that_have_ended_are_listed_on_request(cli: Cli) -> None:
    async def begin(*numbers: int) -> str:
        async with app:
            async with app.group(on_complete=tidy.draft()) as group:
                await group.enqueue_many(send, [{"n": one} for one in numbers])
            return group.id

    live, over = asyncio.run(begin(1)), asyncio.run(begin())
    assert [one["id"] for one in document(cli, "groups")] == [live]
    assert [one["id"] for one in document(cli, "groups", "--ended")] == [over]


def test_a_member_that_a_group_waits_for_is_not_removed(cli: Cli) -> None:
    async def begin() -> str:
        async with app, app.group(on_complete=tidy.draft()) as group:
            return (await group.enqueue(send, {"n": 1})).id

    member = asyncio.run(begin())
    code, _, err = cli("remove", "mail.out", member, "--yes")
    assert code == 1
    assert "a flow or a group waits for its end; cancel it instead" in err
    assert job(cli, member)["state"] == "ready"


def test_a_limit_by_cost_is_configured_in_the_text_that_shows_it(cli: Cli) -> None:
    _, out, _ = cli("configure", "llm")
    shown = next(line for line in out.splitlines() if line.startswith("limits"))
    text = shown.removeprefix("limits").strip()
    assert text == "9/s, 5000/min of tokens"
    told = document(cli, "configure", "llm", f"limits={text.replace('5000', '4000')}")
    assert told["settings"]["limits"] == ["9/s", "4000/min of tokens"]


def test_a_job_is_enqueued_with_what_it_costs(cli: Cli) -> None:
    for _ in range(2):
        made = document(cli, "enqueue", "llm/ask", "--cost", "tokens=4000")["id"]
    hand_out()
    told = document(cli, "explain", "llm", made)
    assert [(gate["name"], gate["detail"]) for gate in told["gates"]] == [
        ("unserved", "llm"),
        ("limit", "5000/min of tokens"),
    ]
    assert " 5000/min of tokens, until 20" in cli("explain", "llm", made)[1]
    for text in ("tokens", "tokens=", "tokens=many", "tokens=-1"):
        code, _, err = cli("enqueue", "llm/ask", "--cost", text)
        assert (code, f"--cost must be UNIT=N such as tokens=1200, got {text!r}" in err) == (
            2,
            True,
        )
    code, _, err = cli("enqueue", "llm/ask", "--cost", "tokens=1", "--cost", "tokens=2")
    assert (code, "got 'tokens' again" in err) == (2, True)
    code, _, err = cli("enqueue", "llm/ask", "--cost", "token=1")
    assert (code, "did you mean 'tokens'?" in err) == (2, True)


def hand_out() -> None:
    """Claim one job of `llm`, as a worker that dies then would."""

    async def claim() -> None:
        async with app:
            engine = (await app.runtime()).engine
            await engine.exchange("llm", "caller", "worker", Turn("call", 1, []))

    asyncio.run(claim())
