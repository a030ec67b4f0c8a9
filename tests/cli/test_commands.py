"""What operators' commands show and do, in words and as JSON documents."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from faena import Faena, Retry
from tests._support.command import run
from tests._support.valkey import Server
from tests.cli.conftest import Cli, listed

Capture = pytest.CaptureFixture[str]
SECRET = "4111-1111"

app = Faena("counter", "redis://127.0.0.1:1/0")
mail = app.queue("mail", retry=Retry.never())
invoice = app.queue("invoice")
TARGET = f"{__name__}:app"


@mail.task
async def send(card: str) -> str:
    return card


class Unlucky(ValueError):
    code = "NO_LUCK"


@mail.task
async def fail(_card: str) -> None:
    raise Unlucky("\x1b[31mno [bold]luck[/bold]")


@pytest.fixture(autouse=True)
def _broker(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with server.client() as client:
        client.flushall()
    monkeypatch.delenv("FAENA_APP", raising=False)
    with app.override(url=server.url):
        yield


def enqueue(task: Any, number: int = 1, **options: Any) -> list[str]:
    async def work() -> list[str]:
        async with app:
            receipts = await task.enqueue_many([SECRET] * number, **options)
            return [receipt.id for receipt in receipts]

    return asyncio.run(work())


def work_off() -> None:
    async def work() -> None:
        async with app:
            await app.run_worker([mail], until_empty=True)

    asyncio.run(work())


def document(cli: Cli, *args: str) -> Any:
    code, out, err = cli(*args, "--json")
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    return listed(json.loads(out))


def test_queues_shows_counts_holds_and_workers(cli: Cli) -> None:
    enqueue(send, 3)
    enqueue(send, 2, delay="1h")
    assert cli("pause", TARGET, "invoice", "--reason", "audit")[0] == 0
    code, out, err = cli("queues", TARGET)
    assert (code, err) == (0, "")
    heads, _, mail_row, invoice_row = out.splitlines()
    assert heads.split()[:3] == ["queue", "ready", "delayed"]
    assert mail_row.split()[:3] == ["mail", "3", "2"]
    assert invoice_row.split()[-1] == "audit"
    first, second = document(cli, "queues", TARGET)
    assert (first["queue"], first["counts"]["ready"], first["counts"]["delayed"]) == ("mail", 3, 2)
    assert [hold["reason"] for hold in second["holds"]] == ["audit"]


def test_the_app_may_come_from_the_environment(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAENA_APP", TARGET)
    assert [one["queue"] for one in document(cli, "queues")] == ["mail", "invoice"]
    (job_id,) = enqueue(send)
    assert document(cli, "job", "mail", job_id)["id"] == job_id


def test_job_tells_everything_but_what_the_job_carries(cli: Cli) -> None:
    (job_id,) = enqueue(send, tenant="org-1", key="card", headers={"trace": "7"}, attempts=4)
    work_off()
    assert "attempts made  1 of 4" in cli("job", TARGET, "mail", job_id)[1]
    for args in (("job", TARGET, "mail", job_id), ("job", TARGET, "mail", job_id, "--json")):
        code, out, _ = cli(*args)
        assert code == 0
        assert SECRET not in out
    told = document(cli, "job", TARGET, "mail", job_id)
    assert (told["state"], told["tenant"], told["key"]) == ("completed", "org-1", "card")
    assert (told["attempts_made"], told["max_attempts"], told["origin"]) == (1, 4, job_id)
    assert {"payload", "result"}.isdisjoint(told)
    told = document(cli, "job", TARGET, "mail", job_id, "--payload")
    assert (told["payload"], told["result"]) == (SECRET, SECRET)
    assert SECRET in cli("job", TARGET, "mail", job_id, "--payload")[1]


@pytest.mark.parametrize("command", [("job",), ("dlq", "show")])
def test_a_failed_attempt_is_shown_with_its_time_worker_and_code(
    command: tuple[str, ...], cli: Cli
) -> None:
    (job_id,) = enqueue(fail, attempts=1)
    work_off()
    out = cli(*command, TARGET, "mail", job_id)[1]
    (error,) = document(cli, *command, TARGET, "mail", job_id)["errors"]
    at = datetime.fromisoformat(error["at"])
    assert f"attempt 1 at {at:%Y-%m-%d %H:%M:%S} UTC on {error['worker']}: Unlucky (NO_LUCK)" in out


def test_what_a_job_says_cannot_reach_the_terminal(cli: Cli) -> None:
    (job_id,) = enqueue(fail)
    work_off()
    for args in (("job", TARGET, "mail", job_id), ("jobs", TARGET, "mail")):
        code, out, _ = cli(*args)
        assert code == 0
        assert "\x1b" not in out
        assert "\\x1b[31mno [bold]luck[/bold]" in out


def test_jobs_are_listed_page_by_page(cli: Cli) -> None:
    ids = enqueue(send, 5)
    page = document(cli, "jobs", TARGET, "mail", "--state", "ready", "--limit", "3")
    assert [one["id"] for one in page["items"]] == ids[:3]
    assert SECRET not in json.dumps(page)
    args = ("--state", "ready", "--limit", "3", "--cursor", page["cursor"])
    rest = document(cli, "jobs", TARGET, "mail", *args)
    assert [one["id"] for one in rest] == ids[3:]
    _, out, _ = cli("jobs", TARGET, "mail", "--state", "ready", "--limit", "2", "--newest-first")
    assert out.splitlines()[0] == "ready jobs of mail:"
    assert out.splitlines()[3].startswith(ids[-1])
    assert "more: --cursor " in out


def test_a_pause_ends_by_itself_or_by_a_resume(cli: Cli) -> None:
    code, out, _ = cli("pause", TARGET, "--all", "--for", "5m")
    assert (code, out) == (0, "paused for 5m: mail, invoice\n")
    (hold,) = document(cli, "queues", TARGET)[0]["holds"]
    until, since = map(datetime.fromisoformat, (hold["until"], hold["since"]))
    assert timedelta() < until - since <= timedelta(minutes=5)
    cli("pause", TARGET, "mail", "--reason", "audit")
    code, out, _ = cli("resume", TARGET, "mail")
    assert (code, out) == (0, "mail: resumed; still held: audit\n")
    assert document(cli, "resume", TARGET, "mail", "invoice") == [
        {"queue": "mail", "resumed": False, "holds": ["audit"]},
        {"queue": "invoice", "resumed": True, "holds": []},
    ]
    code, out, err = cli("resume", TARGET, "mail")
    assert (code, out) == (1, "mail: had no hold 'pause'; still held: audit\n")
    assert "there is no hold 'pause'; use --reason with one of: audit" in err
    assert cli("resume", TARGET, "invoice")[0] == 0


def test_a_pause_may_say_why_in_words(cli: Cli) -> None:
    assert cli("pause", TARGET, "mail", "--reason", "smtp down: ana's call")[0] == 0
    (hold,) = document(cli, "queues", TARGET)[0]["holds"]
    assert hold["reason"] == "smtp down: ana's call"
    code, out, _ = cli("resume", TARGET, "mail", "--reason", "smtp down: ana's call")
    assert (code, out) == (0, "mail: resumed\n")


def test_a_list_of_nothing_says_so(cli: Cli) -> None:
    assert cli("jobs", TARGET, "mail")[1] == "dead jobs of mail:\nnone\n"


def test_one_job_that_refuses_is_told_once(cli: Cli) -> None:
    code, out, err = cli("rerun", TARGET, "mail", "nope")
    assert (code, out) == (1, "")
    assert err.count("nope") == 1
    code, out, err = cli("rerun", TARGET, "mail", "nope", "neither")
    assert (code, out.count("no job nope"), out.count("no job neither")) == (1, 1, 1)
    assert err.startswith("faena: 2 of 2 jobs were refused, see above")


def test_a_job_that_came_too_late_is_told_to_have_expired(cli: Cli) -> None:
    (late,) = enqueue(send, expires=datetime(2000, 1, 1, tzinfo=UTC))
    work_off()
    out = cli("job", TARGET, "mail", late)[1]
    assert "\nexpired at 2" in out
    assert "lost" not in out


def test_jobs_are_cancelled_promoted_and_run_again(cli: Cli) -> None:
    waiting, delayed = enqueue(send) + enqueue(send, delay="1h")
    assert document(cli, "cancel", TARGET, "mail", waiting) == [
        {"id": waiting, "outcome": "cancelled"}
    ]
    assert cli("promote", TARGET, "mail", delayed)[0] == 0
    assert cli("rerun", TARGET, "mail", waiting)[0] == 0
    assert document(cli, "queues", TARGET)[0]["counts"]["ready"] == 2


def test_a_job_that_refuses_keeps_no_other_from_it_and_is_told(cli: Cli) -> None:
    first, second = enqueue(send, 2)
    code, out, err = cli("cancel", TARGET, "mail", first, "nobody", second, "--json")
    assert code == 1
    outcomes = [one["outcome"] for one in json.loads(out)["items"]]
    assert outcomes == ["cancelled", "refused", "cancelled"]
    assert json.loads(err)["code"] == "job_not_found"
    assert json.loads(err)["message"].startswith("no job nobody in this queue")
    assert err.count("\n") == 1


def test_clean_removes_what_is_old_enough(cli: Cli) -> None:
    enqueue(send, 3)
    work_off()
    (cleaned,) = document(cli, "clean", TARGET, "mail", "--age", "1h")
    assert (cleaned["queue"], cleaned["removed"]) == ("mail", 0)
    code, out, _ = cli("clean", TARGET, "mail", "--state", "dead", "--age", "0s", "--yes")
    assert (code, out) == (0, "0 jobs removed from mail\n")
    code, out, _ = cli("clean", TARGET, "mail", "--state", "completed", "--age", "0s")
    assert (code, out) == (0, "3 jobs removed from mail\n")


def test_clean_without_a_queue_cleans_all_of_them_but_leaves_dead_jobs_alone(cli: Cli) -> None:
    enqueue(send, 2)
    enqueue(fail)
    work_off()
    mail_, invoice_ = document(cli, "clean", TARGET, "--age", "0s")
    assert mail_["states"] == {"cancelled": 0, "completed": 2}
    assert (invoice_["queue"], invoice_["removed"]) == ("invoice", 0)
    assert document(cli, "queues", TARGET)[0]["counts"]["dead"] == 1


def test_clean_asks_before_it_removes_dead_jobs(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    enqueue(fail, 3)
    work_off()
    args = ("clean", TARGET, "mail", "--state", "dead", "--age", "0s")
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    assert cli(*args)[0] == 1
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    code, out, err = cli(*args)
    assert (code, out) == (1, "")
    assert err == "faena: nothing was done: no terminal for the confirmation; use --yes\n"
    assert document(cli, "queues", TARGET)[0]["counts"]["dead"] == 3
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    code, out, err = cli(*args)
    assert (code, out) == (0, "3 jobs removed from mail\n")
    assert err.startswith("Remove dead jobs of mail, including pending ones?")


def test_dead_jobs_that_were_dealt_with_are_counted_apart(cli: Cli) -> None:
    first, second, _, _ = enqueue(fail, 4)
    work_off()
    assert cli("dlq", "discard", TARGET, "mail", first)[0] == 0
    assert cli("dlq", "retry", TARGET, "mail", second)[0] == 0
    seen = document(cli, "queues", TARGET)[0]
    assert (seen["counts"]["dead"], seen["counts"]["ready"]) == (2, 1)
    assert seen["dealt_with"] == {"retried": 1, "discarded": 1, "resolved": 0}
    heads, _, row, _ = cli("queues", TARGET)[1].splitlines()
    assert "dealt with" in heads
    assert row.split()[6:9] == ["2", "0", "2"]


class Terminal(io.StringIO):
    """Somebody who types."""

    def isatty(self) -> bool:
        return True


def test_drain_and_obliterate_ask_first(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    enqueue(send, 3)
    enqueue(send, 2, delay="1h")
    for answer in ("n\n", ""):
        monkeypatch.setattr("sys.stdin", Terminal(answer))
        code, out, err = cli("drain", TARGET, "mail")
        assert (code, out) == (1, "")
        assert err.endswith("faena: nothing was done: answer y, or use --yes\n")
    args = ("drain", TARGET, "mail", "--yes", "--keep-delayed")
    assert document(cli, *args) == {"queue": "mail", "removed": 3}
    assert cli("drain", TARGET, "mail", "--yes")[1] == "2 waiting jobs removed from mail\n"
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    code, out, err = cli("obliterate", TARGET, "mail")
    assert (code, out) == (0, "mail was removed with all its jobs\n")
    assert err.startswith("Remove mail with everything in it?")


def test_audit_finds_nothing_wrong_with_what_the_engine_wrote(cli: Cli, server: Server) -> None:
    enqueue(send, 3)
    assert cli("audit", TARGET) == (0, "2 queues: consistent\n", "")
    assert document(cli, "audit", TARGET, "mail") == []
    with server.client() as client:
        client.zadd("counter:{mail}:dead", {"ghost": 1})
    code, out, err = cli("audit", TARGET)
    assert code == 1
    assert "ghost" in out
    assert err.startswith("faena: ")


def test_audit_exits_with_1_where_a_promise_is_broken(cli: Cli, server: Server) -> None:
    with server.client() as client:
        client.set(f"{app.namespace}:{{mail}}:strange", 1)
    code, out, err = cli("audit", TARGET, "--json")
    problem = "must be in the catalogue"
    found = {"queue": "mail", "kind": "key", "name": "strange", "problem": problem}
    assert (code, json.loads(out)["items"]) == (1, [found])
    assert "1 violation found" in err


def test_doctor_examines_a_url_an_app_or_the_environment(
    cli: Cli, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_url = cli("doctor", "--url", server.url, "--json")
    monkeypatch.setenv("FAENA_URL", server.url)
    for code, out, err in (by_url, cli("doctor", TARGET, "--json"), cli("doctor", "--json")):
        levels = {one["name"]: one["level"] for one in json.loads(out)["items"]}
        assert (levels["eviction"], levels["persistence"]) == ("ok", "fail")
        assert code == 1
        said = f"1 of {len(levels)} checks needs to be fixed, see above"
        assert json.loads(err)["message"] == said
    _, out, _ = cli("doctor", "--url", server.url)
    assert "run CONFIG SET appendonly yes" in out


def test_doctor_examines_a_broker_that_the_app_itself_refuses(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("from faena import Faena\n\napp = Faena('shop')\n")
    with Server("maxmemory-policy allkeys-lru", unix=True) as server:
        refused = run("queues", "shop:app", cwd=tmp_path, FAENA_URL=server.url)
        examined = run("doctor", "shop:app", cwd=tmp_path, FAENA_URL=server.url)
    assert (refused.code, refused.out) == (1, "")
    assert "must be noeviction" in refused.err
    assert examined.code == 1
    assert "run CONFIG SET maxmemory-policy noeviction" in examined.out


COMMANDS = (
    *("worker", "dev", "queues", "job", "jobs", "pause", "resume", "cancel", "rerun", "promote"),
    *("clean", "drain", "obliterate", "audit", "doctor", "retry-failed"),
)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_ends_with_an_example(command: str, cli: Cli) -> None:
    code, out, err = cli(command, "--help")
    assert (code, err) == (0, "")
    assert f"  faena {command}" in out.partition("Example:")[2]
    assert "--json" in out


def test_without_a_command_the_choice_is_shown(cli: Cli) -> None:
    code, out, _ = cli()
    assert code == 0
    assert all(f"  {command} " in out for command in COMMANDS)


def test_explain_names_what_a_job_waits_for(cli: Cli) -> None:
    (job,) = enqueue(send, delay="1h")
    cli("pause", TARGET, "mail", "--reason", "deploy")
    code, shown, _ = cli("explain", TARGET, "mail", job)
    assert code == 0
    assert "it is not due yet, for another " in shown
    assert "the queue is held (deploy)" in " ".join(shown.split())
    gates = document(cli, "explain", TARGET, "mail", job)["gates"]
    assert [gate["name"] for gate in gates] == ["delayed", "unserved", "held"]
    code, _, told = cli("explain", TARGET, "mail", "nobody")
    assert (code, told) == (
        1,
        "faena: no job nobody in queue mail; `faena jobs` lists the jobs of a queue\n",
    )


def test_an_id_that_looks_like_an_option_stands_behind_two_dashes(cli: Cli) -> None:
    code, _, err = cli("job", TARGET, "mail", "--", "--json")
    assert (code, err.startswith("faena: no job --json in queue mail;")) == (1, True)


def test_a_turn_is_told_in_words(cli: Cli) -> None:
    (job,) = enqueue(send, tenant="acme")
    shown = cli("explain", TARGET, "mail", job)[1].splitlines()
    (turn,) = [line.split(maxsplit=1) for line in shown if line.startswith("turn")]
    assert turn[1].strip() == "its tenant is next"


def test_explain_says_what_became_of_a_job_that_is_finished(cli: Cli) -> None:
    (done,), (dead,), (gone,) = enqueue(send), enqueue(fail), enqueue(send, delay="1h")
    cli("cancel", TARGET, "mail", gone)
    work_off()
    cli("dlq", "discard", TARGET, "mail", dead, "--by", "ana", "--reason", "too late")
    for job, words in ((done, "it completed 20"), (gone, "it was cancelled 20")):
        code, shown, err = cli("explain", TARGET, "mail", job)
        assert (code, err) == (0, "")
        assert f"job {job} is not waiting: {words}" in shown
    code, shown, _ = cli("explain", TARGET, "mail", dead)
    assert code == 0
    assert "\\x1b[31mno [bold]luck[/bold], after 1 failed attempt" in shown
    assert "discard by ana" in shown
    told = document(cli, "explain", TARGET, "mail", dead)
    assert (told["state"], told["desk"]["status"]) == ("dead", "discarded")
    assert told["past"]["error"].startswith("Unlucky: ")
    assert SECRET not in json.dumps(told)


@pytest.mark.parametrize("group", ["dlq", "flow"])
def test_a_group_alone_shows_its_commands(group: str, cli: Cli) -> None:
    code, out, err = cli(group)
    assert (code, err) == (0, "")
    assert out == cli(group, "--help")[1]
    assert out.count("\n") > 10
