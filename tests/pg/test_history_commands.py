"""The history on the command line."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from faena import Faena, Retain
from faena.cli import main
from faena.pg import History, Postgres
from tests._support.valkey import Server

shop = Faena("history-commands")
TARGET = f"{__name__}:shop"


@shop.queue("mail", retain=Retain(cancelled_count=1)).task
async def send(number: int) -> int:
    return number


pg = Postgres(shop, relay=False, history=History())
Told = Callable[..., Any]


@pytest.fixture
def told(
    database: str,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Told]:
    """What a command says, with `--json` or without."""
    monkeypatch.setenv("FAENA_APP", TARGET)
    monkeypatch.setenv("FAENA_URL", server.url)
    monkeypatch.setattr(pg, "_url", database)

    def run(*words: str, as_json: bool = True) -> Any:
        assert main([*words, *(["--json"] if as_json else [])]) == 0
        out = capsys.readouterr().out
        return json.loads(out) if as_json else out

    yield run
    shop.sync.run(pg.close())
    shop.sync.close()


@pytest.fixture
def ids(told: Told) -> list[str]:
    """Three jobs that were cancelled; the broker keeps the last one."""

    async def fill() -> list[str]:
        receipts = [await send.enqueue(number, tenant="acme") for number in range(3)]
        for one in receipts:
            await one.handle.cancel()
        await pg.history.read_now()
        return [one.id for one in receipts]

    return shop.sync.run(fill())


def test_jobs_lists_those_of_both(told: Told, ids: list[str]) -> None:
    listed = told("jobs", "mail", "--state", "cancelled")["items"]
    expected = [(ids[0], "history"), (ids[1], "history"), (ids[2], "broker")]
    assert [(one["id"], one["source"]) for one in listed] == expected
    words = ("jobs", "mail", "--state", "cancelled")
    assert told(*words, as_json=False).count("history") == 2
    listed = told(*words, "--source", "broker")["items"]
    assert [one["id"] for one in listed] == ids[2:]


def test_without_the_history_the_brokers_jobs_are_listed_with_one_warning(
    told: Told, ids: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.sync.run(pg.close())
    monkeypatch.setattr(pg, "_url", "postgresql://nobody@127.0.0.1:1/x")
    assert main(["jobs", "mail", "--state", "cancelled", "--json"]) == 0
    out, err = capsys.readouterr()
    assert [one["id"] for one in json.loads(out)["items"]] == ids[2:]
    assert err.startswith("faena: the history cannot be read, so only the broker's jobs are shown")
    assert err.count("\n") == 1
    assert main(["jobs", "mail", "--state", "cancelled", "--source", "broker"]) == 0
    assert capsys.readouterr().err == ""


def test_a_queue_that_is_gone_from_the_code_is_searched(told: Told, ids: list[str]) -> None:
    async def move() -> None:
        async with pg.transaction() as connection:
            await connection.execute("UPDATE faena.history SET queue = 'old'")

    shop.sync.run(move())
    search = ("pg", "history", "search", "--queue", "old")
    assert len(told(*search)["items"]) == len(ids)
    assert told(*search, "--state", "dead")["items"] == []


def test_a_dead_job_of_the_history_says_which_attempt_failed(told: Told, ids: list[str]) -> None:
    async def change() -> None:
        async with pg.transaction() as connection:
            await connection.execute(
                "UPDATE faena.history SET state = 'dead', attempts = 3, worker = 'w1',"
                " error = 'Timeout', message = 'late' WHERE id = %s",
                [ids[0]],
            )

    shop.sync.run(change())
    text = told("job", "mail", ids[0], as_json=False)
    assert "attempt 3 at " in text
    assert " on w1: Timeout: late" in text


def test_job_shows_one_that_the_broker_has_removed(told: Told, ids: list[str]) -> None:
    assert told("job", "mail", ids[0])["source"] == "history"
    assert "the history" in told("job", "mail", ids[0], as_json=False)
    assert "the history" not in told("job", "mail", ids[2], as_json=False)


def test_status_search_and_stats(told: Told, ids: list[str]) -> None:
    status = told("pg", "history", "status")
    assert (status["entries"], status["stored"], status["lost"]) == (0, 3, 0)
    search = ("pg", "history", "search", "--tenant", "acme", "--limit", "2")
    found = told(*search)
    assert [one["id"] for one in found["items"]] == ids[:0:-1]
    rest = told(*search, "--cursor", found["cursor"])
    assert [one["id"] for one in rest["items"]] == ids[:1]
    assert rest["cursor"] is None
    assert told("pg", "history", "search", "--until", "2020-01-01")["items"] == []
    (one,) = told("pg", "history", "stats", "--queue", "mail")["items"]
    assert (one["number"], one["error_rate"]) == (3, None)
    for words in (("status",), ("search",), ("stats", "--window", "1h")):
        assert told("pg", "history", *words, as_json=False)


def test_what_is_stored_is_found_without_the_broker(
    told: Told, ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAENA_URL", "redis://127.0.0.1:1/0")
    shop.sync.run(pg.close())
    shop.sync.close()
    assert len(told("pg", "history", "search", "--since", "2020-01-01")["items"]) == 3
    assert told("pg", "history", "stats")["items"][0]["number"] == len(ids)


def test_erase(told: Told, ids: list[str]) -> None:
    erase = ("pg", "history", "erase", "acme", "--yes", "--by", "ana")
    assert told(*erase) == {"erased": len(ids)}

    async def noted() -> Any:
        async with pg.transaction() as connection:
            found = await connection.execute(
                "SELECT by_whom, command, subject FROM faena.operations"
            )
            return await found.fetchall()

    assert shop.sync.run(noted()) == [("ana", "history erase", "acme")]
    assert told("pg", "history", "search")["items"] == []


def test_erase_asks_first(
    told: Told, ids: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert main(["pg", "history", "erase", "acme"]) == 1
    assert "no terminal for the confirmation; use --yes" in capsys.readouterr().err
    assert len(told("pg", "history", "search")["items"]) == len(ids)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--state", "deed"), "state must be one that jobs end in, got 'deed'"),
        (("--payload", "{"), "--payload must be JSON"),
        (("--limit", "0"), "limit"),
        (("--queue", "mial"), "did you mean 'mail'?"),
        (("--since", "2026-11-02", "--until", "2026-11-01"), "since must be before until"),
        (("--since", "2026-11-01T10:00"), "it must be a day in UTC such as"),
    ],
)
def test_bad_input_is_refused(
    told: Told, words: tuple[str, ...], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pg", "history", "search", *words]) == 2
    assert reason in capsys.readouterr().err
