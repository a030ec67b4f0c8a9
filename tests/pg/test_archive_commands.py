"""`faena pg archive`: policies, runs and archives from the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import psycopg
import pytest

from faena import Faena
from faena.cli import main
from faena.pg import FOREVER, Archive, Postgres
from tests.pg.test_archive import PLAIN

app = Faena("pg-archivist", "redis://127.0.0.1:1/0")
pg_of_app = Postgres(app)
pg_of_app.retain("visits", by="at", keep="5d", tenant="org", then=Archive())
pg_of_app.retain("ratings", keep=FOREVER, legal="10y")
TARGET = f"{__name__}:app"

_STEP = re.compile(r"deleted, (\d+) rows?, \d+ objects?; (\d+) rows? so far")
Cli = Callable[..., tuple[int, Any, str]]


def execute(url: str, text: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(text.encode())
        return found.fetchall() if found.description else []


@pytest.fixture
def url(database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.setattr(pg_of_app, "_url", database)
    monkeypatch.setattr(pg_of_app.stores, "_known", {})
    monkeypatch.setenv("FAENA_ARCHIVE_URL", str(tmp_path))
    execute(database, f"{PLAIN}; CREATE TABLE ratings (id int); CREATE TABLE back (LIKE visits)")
    execute(database, "ALTER TABLE back ADD PRIMARY KEY (id)")
    return database


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """A command of `faena pg archive`: its exit code, document and standard error."""
    monkeypatch.setenv("FAENA_APP", TARGET)

    def run(*words: str, as_json: bool = True) -> tuple[int, Any, str]:
        code = main(["pg", "archive", *words, *(["--json"] if as_json else [])])
        out, err = capsys.readouterr()
        return code, json.loads(out) if as_json and out else out, err

    return run


def test_rows_are_archived_listed_verified_and_restored(url: str, cli: Cli) -> None:
    code, told, _ = cli("run", "--dry-run")
    visits, ratings = told["items"]
    assert (code, len(visits["waiting"]), visits["rows"]) == (0, 10, 0)
    assert [one["name"] for one in visits["leaving"]] == visits["waiting"]
    assert visits["leaving"][0]["start"].endswith("Z")
    assert (ratings["then"], ratings["keep"], ratings["legal"]) == ("keep", "forever", "10y")
    assert execute(url, "SELECT count(*) FROM visits") == [(240,)]
    code, told, err = cli("run")
    assert [(one["table"], one["rows"], one["problem"]) for one in told["items"]] == [
        ("public.visits", 240, None),
        ("public.ratings", 0, None),
    ]
    assert (code, "public.visits 2025-02-19 to 2025-02-20: deleted, " in err) == (0, True)
    listed = cli("list", "visits", "--tenant", "o1")[1]["items"]
    assert listed[0]["first_at"].endswith("Z")
    assert {one["tenant"] for one in listed} == {"o1"}
    assert cli("list", "visits", "--until", "2025-02-20T00:00:00Z")[1]["items"][0]["rows"] > 0
    code, told, _ = cli("verify", "visits")
    assert (code, told["rows"], told["problems"]) == (0, 240, [])
    assert cli("restore", "visits", "--dry-run")[1]["rows"] == 240
    code, told, _ = cli("restore", "visits", "--into", "back")
    assert (code, told["rows"], told["skipped"]) == (0, 240, 0)
    code, _, err = cli("restore", "visits", as_json=False)
    assert (code, "would be archived again" in err) == (1, True)


def test_it_is_told_in_words(url: str, cli: Cli) -> None:
    for words in ((), ("status",)):
        _, text, _ = cli(*words, as_json=False)
        assert text.splitlines()[0].split()[:3] == ["table", "keep", "legal"]
        assert "None" not in text
    assert cli("run", as_json=False)[1].startswith("public.visits: 240 rows moved out, ")
    assert cli("list", "visits", as_json=False)[1].splitlines()[0].split()[1] == "tenant"
    assert "240 rows read back" in cli("verify", "visits", as_json=False)[1]
    text = cli("restore", "visits", "--into", "back", as_json=False)[1]
    assert text == "240 rows restored into public.back, 0 were there\n"


def test_a_dry_run_lists_periods_with_about_how_many_rows(url: str, cli: Cli) -> None:
    execute(url, "ANALYZE visits")
    code, text, _ = cli("run", "--dry-run", as_json=False)
    head, _, first, *_ = text.splitlines()
    assert (code, head.split()) == (0, ["table", "partition", "or", "period", "then", "rows"])
    assert re.match(r"visits +2025-\d\d-\d\d to 2025-\d\d-\d\d +archive +about \d+ rows", first)
    numbers = [int(one) for one in re.findall(r"about (\d+) row", text)]
    assert 120 < sum(numbers) < 480  # there are 240
    assert cli("run", "ratings", "--dry-run", as_json=False)[1] == "nothing leaves now\n"


def test_progress_tells_of_each_step_how_many_rows_it_moved(url: str, cli: Cli) -> None:
    err = cli("run", as_json=False)[2]
    steps = [(int(one), int(sums)) for one, sums in _STEP.findall(err)]
    assert len(steps) > 1
    assert [sums for _, sums in steps] == list(accumulate(one for one, _ in steps))


def test_what_changes_something_is_recorded_with_its_author(
    url: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAENA_BY", "eva")
    assert cli("run", "--by", "ana")[0] == 0
    assert cli("restore", "visits", "--into", "back")[0] == 0
    assert cli("lower", "ratings", "--to", "5y", "--yes", "--by", "ana")[0] == 0
    assert cli("restore", "visits", "--dry-run")[0] == 0  # changes nothing
    assert execute(url, "SELECT by_whom, command, subject FROM faena.operations ORDER BY id") == [
        ("ana", "archive run", ""),
        ("eva", "archive restore", "visits into back"),
        ("ana", "archive lower", "ratings to 5y"),
    ]


def test_lowering_a_protection_never_raises_it(url: str, cli: Cli) -> None:
    assert cli("run")[0] == 0
    assert cli("lower", "ratings", "--to", "2y", "--yes")[0] == 0
    assert cli("lower", "ratings", "--to", "2y", "--yes")[0] == 0  # for another column
    for term in ("5y", "forever"):
        code, _, err = cli("lower", "ratings", "--to", term, "--yes", as_json=False)
        assert (code, "to must not be longer than the recorded 2y" in err) == (2, True)
    assert execute(url, "SELECT legal FROM faena.retentions WHERE table_name LIKE '%ratings'") == [
        ("2y",)
    ]
    assert cli("lower", "ratings", "--yes")[0] == 0
    code, _, err = cli("lower", "ratings", "--to", "1d", "--yes", as_json=False)
    assert (code, "which is none" in err) == (2, True)


def test_a_tenant_without_archives_and_a_time_that_ends_before_it_begins_are_refused(
    url: str, cli: Cli
) -> None:
    assert cli("run")[0] == 0
    code, _, err = cli("verify", "visits", "--tenant", "o11", as_json=False)
    assert (code, "tenant must be one that has archives of public.visits" in err) == (2, True)
    turned = ("--since", "2025-02-20", "--until", "2025-02-19")
    for words in (("list", "visits"), ("restore", "visits", "--into", "back")):
        code, _, err = cli(*words, *turned, as_json=False)
        assert (code, "since must be before until" in err) == (2, True)


def test_what_is_refused_is_an_exit_code(
    url: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("run")[0] == 0
    next(tmp_path.rglob("*.zst")).write_bytes(b"")
    code, told, _ = cli("verify", "visits")
    assert (code, len(told["problems"])) == (1, 1)
    _, text, _ = cli("verify", "visits", as_json=False)
    assert text.splitlines()[0].endswith(" read back, 1 damaged or missing")
    (tmp_path / "public.visits" / "stray.txt").write_bytes(b"")
    assert "unknown file public.visits/stray.txt" in cli("verify", "visits", as_json=False)[1]
    for words in (("verify",), ("list",), ("restore", "--into", "back"), ("restore", "--dry-run")):
        code, _, err = cli(words[0], "visit", *words[1:], as_json=False)
        assert (code, "did you mean 'visits'?" in err) == (2, True)
    code, _, err = cli("run", "visit", as_json=False)
    assert (code, "did you mean 'visits'?" in err) == (2, True)
    execute(url, "DROP TABLE ratings")
    code, told, _ = cli("run")
    assert (code, told["items"][1]["problem"]) == (1, "table ratings does not exist")
    assert cli("run", "--dry-run")[0] == 1


def test_a_day_is_its_first_instant(url: str, cli: Cli) -> None:
    assert cli("run")[0] == 0
    words = ("restore", "visits", "--dry-run", "--until")
    assert cli(*words, "2025-02-20")[1] == cli(*words, "2025-02-20T00:00:00Z")[1]
    assert 0 < cli(*words, "2025-02-20")[1]["rows"] < 240
    for given in ("2025-02-30", "2025-02-20T10:00"):
        code, _, err = cli(*words, given, as_json=False)
        assert (code, "it must be a day in UTC such as 2026-05-01, or an instant" in err) == (
            2,
            True,
        )


def test_a_protection_is_lowered_on_purpose(url: str, cli: Cli) -> None:
    assert cli("run", "ratings")[0] == 0
    code, _, err = cli("lower", "ratings", as_json=False)
    assert (code, "use --yes" in err) == (1, True)
    assert cli("lower", "ratings", "--to", "5y", "--yes")[1] == {
        "table": "public.ratings",
        "legal": "5y",
    }
    assert execute(url, "SELECT keep, legal FROM faena.retentions WHERE legal = '5y'") == [
        ("forever", "5y")
    ]
    code, _, err = cli("lower", "ratings", "--to", "soon", "--yes", as_json=False)
    assert (code, "to must be whole days" in err) == (2, True)
