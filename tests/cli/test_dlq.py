"""The dead-letter desk from the command line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from faena import Faena, Retry
from faena.deadletter.desk import Desk
from faena.deadletter.redrive_view import RedriveView
from tests._support.valkey import Server
from tests.cli.conftest import Cli, listed

Capture = pytest.CaptureFixture[str]
SECRET = "4111-1111"

app = Faena("counter", "redis://127.0.0.1:1/0")
mail = app.queue("mail", retry=Retry.never())
invoice = app.queue("invoice", retry=Retry.never())
TARGET = f"{__name__}:app"
down = True


@mail.task
async def send(card: str) -> None:
    if down:
        raise ConnectionRefusedError("\x1b[31mno luck")


@invoice.task
async def bill(card: str) -> None:
    raise ValueError(f"cannot bill {len(card)}")


@pytest.fixture(autouse=True)
def _broker(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with server.client() as client:
        client.flushall()
    monkeypatch.setenv("FAENA_APP", TARGET)
    monkeypatch.setattr(f"{__name__}.down", True)
    with app.override(url=server.url):
        yield


def bury(task: Any, number: int = 1, **options: Any) -> list[str]:
    """Jobs that have died."""

    async def work() -> list[str]:
        async with app:
            receipts = await task.enqueue_many([SECRET] * number, **options)
            await app.run_worker(until_empty=True)
            return [receipt.id for receipt in receipts]

    return asyncio.run(work())


def work_off() -> None:
    async def work() -> None:
        async with app:
            await app.run_worker(until_empty=True)

    asyncio.run(work())


def document(cli: Cli, *args: str) -> Any:
    code, out, err = cli("dlq", *args, "--json")
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    return listed(json.loads(out))


def test_dead_jobs_of_all_queues_are_listed_page_by_page(cli: Cli) -> None:
    first = bury(send, 2, tenant="acme")
    (second,) = bury(bill)
    page = document(cli, "list")
    assert [one["id"] for one in page] == [second, *reversed(first)]
    assert SECRET not in json.dumps(page)
    page = document(cli, "list", "mail", "--limit", "1", "--oldest-first")
    assert [one["id"] for one in page["items"]] == first[:1]
    more = ("--limit", "1", "--oldest-first", "--cursor", page["cursor"])
    rest = document(cli, "list", "mail", *more)
    assert [one["id"] for one in rest] == first[1:]
    code, out, err = cli("dlq", "list", "invoice", *more)
    assert (code, out) == (2, "")
    assert err.startswith("faena: cursor must come from a page of the same filter and direction")
    code, out, _ = cli("dlq", "list", "--error", "ECONNREFUSED", "--tenant", "acme")
    assert code == 0
    assert out.count("pending") == 2
    assert "\x1b" not in out
    assert document(cli, "list", "--older-than", "1h") == []


def test_show_tells_everything_but_what_the_job_carries(cli: Cli) -> None:
    (job,) = bury(send, tenant="acme")
    code, out, _ = cli("dlq", "show", "mail", job)
    assert code == 0
    assert "ECONNREFUSED" in out
    assert "Traceback" in out
    assert "attempts made  1\n" in "\n".join(line.rstrip() for line in out.splitlines())
    assert SECRET not in out
    told = document(cli, "show", "mail", job)
    assert "payload" not in told
    assert SECRET not in json.dumps(told)
    told = document(cli, "show", "mail", job, "--payload")
    assert (told["payload"], told["status"], told["error"]["code"]) == (
        SECRET,
        "pending",
        "ECONNREFUSED",
    )
    code, _, err = cli("dlq", "show", "mail", "nobody")
    assert (code, err) == (
        1,
        "faena: no dead job nobody in queue mail; `faena dlq list` lists the dead jobs\n",
    )


def test_groups_and_stats_count(cli: Cli) -> None:
    bury(send, 3)
    bury(bill)
    first, second = document(cli, "groups")
    assert (first["queue"], first["pending"], second["sample"]) == ("mail", 3, "cannot bill #")
    only = document(cli, "list", "--fingerprint", first["fingerprint"])
    assert len(only) == 3
    seen = document(cli, "stats")
    assert (seen["total"], seen["by_queue"]) == (4, {"mail": 3, "invoice": 1})
    assert seen["by_status"]["pending"] == 4
    assert cli("dlq", "groups")[0] == 0
    assert "oldest pending" in cli("dlq", "stats", "mail")[1]


def test_retry_discard_and_resolve_decide_once(cli: Cli) -> None:
    a, b, c = bury(send, 3)
    code, out, _ = cli("dlq", "retry", "mail", a, "--by", "ana", "--reason", "it is back")
    assert (code, "retried" in out) == (0, True)
    assert cli("dlq", "discard", "mail", b)[0] == 0
    assert cli("dlq", "resolve", "mail", c, "--reason", "by hand")[0] == 0
    code, out, err = cli("dlq", "retry", "mail", a, b, c, "--json")
    refused = [one["refused"] for one in json.loads(out)["items"]]
    assert (code, refused) == (1, ["retried", "discarded", "resolved"])
    told = json.loads(err)
    new = document(cli, "show", "mail", a)["retried_as"]
    assert told["message"].startswith(f"dead job {a} is retried as {new} (and 2 others)")
    assert f"refused: retried as {new}" in cli("dlq", "retry", "mail", a)[1]
    assert (told["code"], told["exit_code"]) == ("invalid_transition", 1)
    told = document(cli, "show", "mail", a)
    assert told["resolution"]["by"] == "ana"
    assert document(cli, "stats")["by_status"] == {
        "pending": 0,
        "retried": 1,
        "discarded": 1,
        "resolved": 1,
    }


@pytest.mark.parametrize("verb", ["retry", "discard", "resolve"])
def test_a_refusal_looks_like_none_of_the_others(cli: Cli, verb: str) -> None:
    a, b = bury(send, 2)
    done = {"retry": "retried", "discard": "discarded", "resolve": "resolved"}[verb]
    assert cli("dlq", "resolve", "mail", a)[0] == 0
    code, out, err = cli("dlq", verb, "mail", a, b)
    rows = [line.split()[1:3] for line in out.splitlines()[2:]]
    assert (code, rows[0], rows[1][0]) == (1, ["refused:", "resolved"], done)
    assert err == f"faena: dead job {a} is resolved; `faena dlq show` shows it\n"


@pytest.mark.parametrize("verb", ["retry", "discard", "resolve"])
def test_a_single_refusal_is_a_document_too(cli: Cli, verb: str) -> None:
    (dead,) = bury(send)
    assert cli("dlq", "resolve", "mail", dead)[0] == 0
    live = asyncio.run(_enqueue())
    for job, why in ((dead, "resolved"), (live, "ready"), ("nobody", "unknown")):
        code, out, err = cli("dlq", verb, "mail", job, "--json")
        dealt = {"id": job, "new_id": None, "refused": why}
        assert (code, json.loads(out)["items"]) == (1, [dealt])
        assert err.count("\n") == 1
        assert f"refused: {why}" in cli("dlq", verb, "mail", job)[1]
    assert "no dead job nobody in queue mail; `faena dlq list`" in err


async def _enqueue() -> str:
    async with app:
        return (await send.enqueue(SECRET)).id


def test_a_redrive_that_fails_says_how_to_go_on(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    view = RedriveView(**(document(cli, "redrive", "mail") | {"state": "failed", "died": 1}))

    async def failed(*_: Any, **__: Any) -> RedriveView:
        return view

    monkeypatch.setattr(Desk, "redrive", failed)
    code, _, err = cli("dlq", "redrive", "mail")
    assert code == 1
    assert err == (
        f"faena: redrive {view.id} failed: 1 job died again; `faena dlq list` "
        "lists dead jobs, `faena dlq redrive QUEUE --resume ID` continues\n"
    )


def test_a_redrive_tells_how_it_goes_and_can_be_stopped(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    bury(send, 3)
    bury(send, 60, tenant="acme")
    code, out, err = cli("dlq", "redrive", "mail", "--tenant", "acme", "--by", "ana")
    assert code == 0
    assert out.endswith(
        ": done, 60 new jobs enqueued, 0 dead again so far; the others may still wait or run: "
        "`faena dlq redrives mail` shows later deaths\n"
    )
    assert err == ""  # without a terminal nobody watches
    redrive = out.split()[1].rstrip(":")
    view = document(cli, "redrive", "mail", "--stop", redrive)
    assert (view["state"], view["moved"], view["by"]) == ("done", 60, "ana")
    assert [one["id"] for one in document(cli, "redrives", "mail")] == [redrive]
    assert redrive in cli("dlq", "redrives", "mail")[1]
    code, _, err = cli("dlq", "redrive", "mail", "--resume", "nobody")
    assert (code, err) == (
        1,
        (
            "faena: no redrive nobody in queue mail; "
            "`faena dlq redrives QUEUE` lists the last redrives\n"
        ),
    )
    monkeypatch.setattr(f"{__name__}.down", False)
    work_off()
    assert document(cli, "stats")["by_status"]["retried"] == 60


def test_retry_failed_retries_everything(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    bury(send, 2)
    bury(bill)
    code, out, _ = cli("retry-failed")
    assert (code, out.splitlines()) == (
        0,
        [
            "mail: 2 new jobs enqueued",
            "invoice: 1 new job enqueued",
            "new jobs may still wait or run: `faena dlq redrives QUEUE` shows those that died",
        ],
    )
    assert cli("retry-failed", "mail")[1] == "mail: 0 new jobs enqueued\n"
    monkeypatch.setattr(f"{__name__}.down", False)
    work_off()
    seen = document(cli, "stats")["by_status"]
    assert (seen["pending"], seen["retried"]) == (1, 3)  # the bill is dead again


PLANS = [
    ("--tenant", "acme"),
    ("--task", "send"),
    ("--error", "ETIMEDOUT"),
    ("--fingerprint", "abc"),
    ("--older-than", "1h"),
    ("--newer-than", "1h"),
    ("--rate", "1/s"),
    ("--canary", "0"),
    ("--failures", "3"),
    ("--by", "ana"),
    ("--reason", "enough"),
]


@pytest.mark.parametrize("plan", PLANS, ids=[name for name, _ in PLANS])
@pytest.mark.parametrize("told", ["--resume", "--stop"])
def test_a_redrive_that_has_begun_takes_no_other_plan(
    cli: Cli, told: str, plan: tuple[str, str]
) -> None:
    code, out, err = cli("dlq", "redrive", "mail", told, "4f2a90c1d3e5", *plan, "--json")
    assert (code, out) == (2, "")
    assert json.loads(err)["message"].startswith(f"{told} must not be combined with {plan[0]}")


@pytest.mark.parametrize("told", ["--resume", "--stop"])
def test_an_empty_id_begins_no_redrive(cli: Cli, told: str) -> None:
    bury(send, 2)
    code, out, err = cli("dlq", "redrive", "mail", told, "")
    assert (code, out) == (2, "")
    assert "redrive" in err
    assert document(cli, "redrives", "mail") == []
    assert document(cli, "stats")["by_status"]["pending"] == 2


@pytest.mark.parametrize(
    "args",
    [
        ("list", "--status", "mended"),
        ("list", "--older-than", "soon"),
        ("redrive", "mail", "--rate", "fast"),
        ("redrive", "mail", "--canary", "100000"),
        ("redrive", "mail", "--resume", "a", "--stop", "b"),
        ("redrive",),
        ("retry", "mail"),
        ("show", "mail"),
        ("shwo", "mail"),
    ],
)
def test_what_makes_no_sense_is_refused(cli: Cli, args: tuple[str, ...]) -> None:
    code, out, err = cli("dlq", *args)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "command",
    ["list", "show", "groups", "retry", "redrive", "redrives", "discard", "resolve", "stats"],
)
def test_help_ends_with_an_example(command: str, cli: Cli) -> None:
    code, out, err = cli("dlq", command, "--help")
    assert (code, err) == (0, "")
    assert f"  faena dlq {command}" in out.partition("Example:")[2]
    assert "--json" in out


def test_a_job_that_will_be_retried_automatically_says_when(cli: Cli) -> None:
    (passing,), (lasting,) = bury(send), bury(bill)
    told = document(cli, "show", "mail", passing)
    assert told["retry_at"] > told["died_at"]
    for command in (("dlq", "show"), ("explain",)):
        _, out, _ = cli(*command, "mail", passing)
        assert "will be retried automatically at 20" in out
        assert "automatically" not in cli(*command, "invoice", lasting)[1]
    code, out, _ = cli("explain", "mail", passing, "--json")
    assert (code, json.loads(out)["desk"]["retry_at"]) == (0, told["retry_at"])
    assert document(cli, "show", "invoice", lasting)["retry_at"] is None
