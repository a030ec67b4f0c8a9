"""`faena pg erase` and `faena pg archive retrieve`."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from faena import Faena
from faena.cli import main
from faena.pg import Archive, Postgres
from tests._support.archive_process import NOW
from tests._support.valkey import Server
from tests._support.working import obliterate
from tests.pg.test_erasure_killed import VISITS

app = Faena("requests")
pg = Postgres(app, relay=False)
pg.retain("visits", by="at", keep="2d", tenant="org", then=Archive(), every="week")
pg.retrieval(secrets="s" * 32)
pg.erasure(wait="50ms")

Cli = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def surroundings(
    valkey: Server, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAENA_URL", valkey.url)
    monkeypatch.setenv("FAENA_APP", f"{__name__}:app")
    monkeypatch.setenv("FAENA_ARCHIVE_URL", str(tmp_path / "archives"))
    monkeypatch.setattr(pg, "_url", database)
    monkeypatch.setattr(pg.stores, "_known", {})


@pytest.fixture
async def filled(surroundings: None) -> AsyncIterator[None]:
    async with pg:
        async with pg.transaction() as connection:
            await connection.execute(VISITS.encode())
        await pg.archive(at=NOW)
    yield
    await obliterate(app)
    await pg.close()


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def run(*words: str, as_json: bool = True) -> tuple[int, Any, str]:
        code = main(["pg", *words, *(["--json"] if as_json else [])])
        out, err = capsys.readouterr()
        return code, json.loads(out) if as_json and out else out, err

    return run


async def work_once() -> None:
    """A worker until nothing is left to do."""
    await app.run_worker(until_empty=True)


def in_loop(do: Callable[[], Any]) -> Any:
    import asyncio

    async def session() -> Any:
        async with app, pg:
            return await do()

    return asyncio.run(session())


def test_a_tenant_is_shown_erased_and_checked(filled: None, cli: Cli) -> None:
    code, told, _ = cli("erase", "o1", "--dry-run")
    assert (code, told["total"] > 5, told["live"]) == (0, True, 0)
    code, asked, _ = cli("erase", "o1", "--by", "ana", "--reason", "asked", "--yes")
    assert (code, asked["state"], asked["by"]) == (0, "waiting", "ana")
    in_loop(work_once)
    code, told, _ = cli("erase", "o1", "--status")
    assert (code, told["total"], told["requests"][0]["state"]) == (0, 0, "done")
    _, text, _ = cli("erase", "o1", "--status", as_json=False)
    assert "table public.visits" in text
    assert "done" in text
    _, told, _ = cli("erase", "o2", "--dry-run")
    assert told["total"] > 5
    assert told["found"]["archives public.visits"] > 0


def test_an_erasure_without_a_reason_or_a_yes_is_refused(filled: None, cli: Cli) -> None:
    code, _, err = cli("erase", "o1", "--yes")
    assert (code, "--reason must be given" in err) == (2, True)
    code, _, err = cli("erase", "o1", "--reason", "asked")
    assert (code, "use --yes" in err) == (1, True)
    code, _, err = cli("erase", "o1", "--by", "a b", "--reason", "x", "--yes")
    assert code == 2
    assert cli("erase", "o1", "--status")[1]["requests"] == []


def test_a_place_that_cannot_be_written_is_told_before_anybody_waits(
    filled: None, cli: Cli, tmp_path: Path
) -> None:
    time = ("--from", "2020-01-01", "--to", "2030-01-01")
    given = ("archive", "retrieve", "visits", "--tenant", "o1", *time, "--output")
    code, _, err = cli(*given, str(tmp_path / "nodir" / "x.gz"), as_json=False)
    assert (code, err.count("\n")) == (2, 1)
    assert "--output must be a file in a directory that you can write to" in err


def test_instants_of_an_erasure_end_with_z(filled: None, cli: Cli) -> None:
    told = cli("erase", "o1", "--by", "ana", "--reason", "asked", "--yes")[1]
    assert told["requested_at"].endswith("Z")
    (request,) = cli("erase", "o1", "--status")[1]["requests"]
    assert request["requested_at"].endswith("Z")


def test_rows_are_retrieved_into_a_file(filled: None, cli: Cli, tmp_path: Path) -> None:
    time = ("--from", "2020-01-01", "--to", "2025-12-31")
    code, told, _ = cli("archive", "retrieve", "visits", "--tenant", "o1", *time)
    assert (code, told["state"]) == (0, "waiting")
    in_loop(work_once)
    path = tmp_path / "out.jsonl.gz"
    given = ("archive", "retrieve", "visits", "--tenant", "o1", *time, "--output", str(path))
    code, told, _ = cli(*given)
    lines = gzip.decompress(path.read_bytes()).splitlines()
    assert (code, told["rows"]) == (0, len(lines))
    assert {json.loads(one)["org"] for one in lines} == {"o1"}
    code, _, err = cli("archive", "retrieve", "nothing", "--tenant", "o1", *time)
    assert (code, "table must be one that has archives" in err) == (2, True)


def test_a_retrieval_that_has_failed_is_an_exit_code(filled: None, cli: Cli) -> None:
    time = ("--from", "2020-01-01", "--to", "2025-12-31")
    given = ("archive", "retrieve", "visits", "--tenant", "o1", *time)
    code, told, _ = cli(*given)
    assert (code, told["state"]) == (0, "waiting")
    in_loop(app.queues["archives"].handle(told["id"]).cancel)
    code, told, _ = cli(*given)
    assert (code, told["state"], told["problem"]) == (1, "failed", "its job is cancelled")
