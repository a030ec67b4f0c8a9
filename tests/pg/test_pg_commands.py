"""`faena pg`: migrations, partitions and conversions from the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from faena import Faena
from faena.cli import main
from faena.pg import Postgres

app = Faena("pg-counter", "redis://127.0.0.1:1/0")
bare = Faena("pg-bare", "redis://127.0.0.1:1/0")
pg_of_app = Postgres(app)
pg_of_app.partitioned("jobs", every="month")
pg_of_app.rollup("jobs_per_day", of="jobs", every="day", measures={"jobs": "count(*)"})
TARGET = f"{__name__}:app"

Cli = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """A command of `faena pg`: its exit code, document and standard error."""
    monkeypatch.setenv("FAENA_APP", TARGET)

    def run(*words: str, as_json: bool = True) -> tuple[int, Any, str]:
        code = main(["pg", *words, *(["--json"] if as_json else [])])
        out, err = capsys.readouterr()
        return code, json.loads(out) if as_json and out else out, err

    return run


@pytest.fixture
def url(database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(pg_of_app, "_url", database)
    return database


def execute(url: str, text: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(text.encode())
        return found.fetchall() if found.description else []


def test_migrations_are_applied_and_checked(
    bare_database: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pg_of_app, "_url", bare_database)
    code, told, _ = cli("migrate", "--check")
    assert (code, "0010_partition.pre" in told["pending"]) == (1, True)
    code, told, _ = cli("status")
    assert (code, "0010_partition.pre" in told["pending"]) == (0, True)
    code, told, _ = cli("migrate", "--step", "pre")
    assert (code, "0010_partition.pre" in told["applied"]) == (0, True)
    assert cli("migrate")[0] == 0
    assert cli("migrate", "--check")[:2] == (0, {"pending": [], "drift": []})
    execute(bare_database, "ALTER TABLE faena.outbox ADD COLUMN extra int")
    code, told, _ = cli("migrate", "--check")
    assert (code, told["pending"], told["drift"][0]["what"]) == (1, [], "column outbox.extra")
    code, text, _ = cli("migrate", "--check", as_json=False)
    assert (code, text) == (
        1,
        "the schema is not what its migrations make: column outbox.extra is extra\n",
    )
    assert cli("migrate", as_json=False)[1] == "nothing to apply\n"


def test_the_status_tells_the_version(url: str, cli: Cli) -> None:
    code, told, _ = cli("status")
    assert (code, told["pending"]) == (0, [])
    assert int(told["server_version"].split(".")[0]) >= 15
    assert told["replica"] is None
    code, told, _ = cli("status", "--processes", "100", "--cores", "2")
    assert (told["connections"]["processes"], told["connections"]["pool"]) == (100, 10)
    assert "do not fit" in told["connections"]["advice"][0]
    code, text, _ = cli("status", as_json=False)
    assert (code, text.startswith("server")) == (0, True)
    assert re.search(r"10 x 1 process *\n", text)


def test_an_app_without_postgres_is_told_what_to_write(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = cli("status", f"{__name__}:bare", as_json=False)
    assert code == 2
    assert "app pg-bare must have a PostgreSQL: write `pg = Postgres(app)` beside it" in err


def test_a_server_that_is_down_is_told(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pg_of_app, "_url", "postgresql://postgres@127.0.0.1:1/x")
    code, _, err = cli("status", as_json=False)
    assert (code, err.count("\n")) == (1, 1)
    assert "PostgreSQL cannot be reached" in err
    assert err.endswith("correct its address: the url of Postgres(), or FAENA_PG_URL\n")
    assert "broker" not in err


def test_what_postgres_refuses_is_not_blamed_on_the_broker(
    bare_database: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pg_of_app, "_url", bare_database)
    for words in (("outbox",), ("convert", "jobs"), ("partitions",)):
        _, out, err = cli(*words, as_json=False)
        assert (bool(out or err), "faena doctor" in err) == (True, False)
    assert cli("outbox", as_json=False)[2].endswith("run `faena pg migrate` first\n")


def test_partitions_are_created_listed_detached_and_attached(url: str, cli: Cli) -> None:
    execute(url, "CREATE TABLE jobs (id int, created_at date) PARTITION BY RANGE (created_at)")
    code, told, _ = cli("partitions", "ensure")
    made = told["made"]["jobs"]
    assert (code, len(made)) == (0, 4)
    assert cli("partitions", "ensure")[1]["made"] == {"jobs": []}
    ((listed,), code) = (cli("partitions")[1]["items"], 0)
    assert [one["name"] for one in listed["partitions"]] == made
    assert listed["partitions"][0]["start"].endswith("Z")
    _, text, _ = cli("partitions", as_json=False)
    assert text.splitlines()[2].split()[3] == "unknown"  # never analyzed
    execute(url, f"ANALYZE {made[0]}")
    assert " 0 + unknown " in cli("partitions", as_json=False)[1]
    assert text.splitlines()[0].split()[:3] == ["table", "every", "partitions"]
    assert cli("partitions", "detach", "jobs", made[1])[0] == 0
    assert "gap" in " ".join(cli("partitions")[1]["items"][0]["problems"])
    assert cli("partitions", "attach", "jobs", made[1], "--by", "ana")[1]["attached"] == made[1]
    noted = execute(url, "SELECT by_whom, command FROM faena.operations ORDER BY id DESC LIMIT 1")
    assert noted == [("ana", "partitions attach")]
    code, _, err = cli("partitions", "detach", "job", made[1], as_json=False)
    assert (code, "did you mean 'jobs'?" in err) == (2, True)


def test_a_table_that_is_refused_is_an_exit_code(url: str, cli: Cli) -> None:
    code, told, _ = cli("partitions", "ensure")
    assert (code, told["problems"]) == (1, {"jobs": ["table jobs does not exist"]})


def test_a_table_is_converted_swapped_reverted_and_finished(url: str, cli: Cli) -> None:
    execute(
        url,
        "CREATE TABLE jobs (id int PRIMARY KEY, created_at timestamptz NOT NULL);"
        "INSERT INTO jobs SELECT n, now() FROM generate_series(1, 10) n",
    )
    code, told, err = cli("partitions", "convert", "jobs")
    assert (code, told["step"], told["copied"]) == (0, "copied", 10), err
    assert "verified: 10 rows" in err
    assert cli("partitions", "status", "jobs")[1]["started_at"].endswith("Z")
    assert cli("partitions", "swap", "jobs")[1]["step"] == "swapped"
    assert cli("partitions", "revert", "jobs")[1]["step"] == "copied"
    assert cli("partitions", "swap", "jobs", "--hold", "5s")[1]["step"] == "swapped"
    code, _, err = cli("partitions", "finish", "jobs", "--drop", as_json=False)
    assert (code, "use --yes" in err) == (1, True)
    assert cli("partitions", "finish", "jobs")[1]["step"] == "finished"
    assert cli("partitions", "finish", "jobs", "--drop", "--yes")[0] == 0
    assert execute(url, "SELECT to_regclass('jobs_before_partitions')") == [(None,)]
    assert execute(url, "SELECT count(*) FROM jobs") == [(10,)]


def test_a_table_that_is_not_declared_is_converted_with_options(url: str, cli: Cli) -> None:
    execute(url, "CREATE TABLE visits (id int PRIMARY KEY, org text, at date NOT NULL)")
    code, _, err = cli("partitions", "convert", "visits", as_json=False)
    assert (code, "must be one that is declared" in err) == (2, True)
    words = ("--by", "at", "--every", "week", "--ahead", "2", "--tenant", "org")
    code, told, err = cli("partitions", "convert", "visits", *words)
    assert told["step"] == "copied"
    missing = 'the app must declare pg.partitioned("visits", every="week"), else no partitions'
    assert err.startswith(missing)
    text = cli("partitions", "convert", "visits", *words, as_json=False)[1]
    assert 'pg.partitioned("visits", every="week")' in text
    assert (
        'pg.partitioned("visits", every=…)'
        in cli("partitions", "status", "visits", as_json=False)[1]
    )
    assert cli("partitions", "cancel", "visits", "--yes")[1]["cancelled"] is True
    code, _, err = cli("partitions", "status", "visits", as_json=False)
    assert (code != 0, "no conversion of public.visits was begun" in err) == (True, True)


def test_the_outbox_is_shown(url: str, cli: Cli) -> None:
    code, told, _ = cli("publish")
    assert (code, told["published"]) == (0, 2)  # those of partitions and roll-ups
    execute(url, "SELECT faena.enqueue('scheduler', 'ensure_partitions')")
    code, told, _ = cli("outbox")
    assert (code, told["pending"], told["sent"], told["refused"]) == (0, 1, 0, 0)
    assert told["queues"] == {"scheduler": 1}
    _, text, _ = cli("outbox", as_json=False)
    assert "scheduler 1" in text


def test_roll_ups_are_run_backfilled_and_listed(url: str, cli: Cli) -> None:
    code, told, _ = cli("rollup", "run")
    assert (code, told["problems"]) == (1, {"jobs_per_day": ["table jobs does not exist"]})
    execute(
        url,
        "CREATE TABLE jobs (created_at timestamptz); INSERT INTO jobs VALUES ('2025-03-09 08:00Z')",
    )
    assert len(cli("rollup", "run")[1]["ran"]["jobs_per_day"]) == 3
    days = ("--first", "2025-03-01", "--last", "2025-03-09")
    code, told, err = cli("rollup", "backfill", "jobs_per_day", *days)
    assert (code, told["done"], told["total"]) == (0, 9, 9)
    assert err.splitlines()[-1] == "2025-03-09: 9 of 9"
    code, told, _ = cli("rollup", "run", "jobs_per_day", "--day", "2025-03-09")
    assert (code, told) == (0, {"ran": {"jobs_per_day": ["2025-03-09"]}})
    ((listed,), code) = (cli("rollup")[1]["items"], 0)
    assert (listed["rows"], listed["first"], listed["problems"]) == (1, "2025-03-09", [])
    assert "jobs_per_day" in cli("rollup", as_json=False)[1]
    sealed = {"name": "jobs_per_day", "sealed_before": "2025-03-09"}
    for day in ("2025-03-09", "2025-03-01"):  # it is only moved forwards
        assert cli("rollup", "seal", "jobs_per_day", "--before", day)[:2] == (0, sealed)
    code, _, err = cli("rollup", "run", "jobs_per_day", "--day", "2025-03-08", as_json=False)
    assert (code, "is sealed before 2025-03-09" in err) == (1, True)
    code, _, err = cli("rollup", "run", "--day", "2025-03-09", as_json=False)
    assert (code, "ROLL-UP must be given with --day" in err) == (2, True)
    code, _, err = cli("rollup", "backfill", "jobs_per_dya", *days, as_json=False)
    assert (code, "did you mean 'jobs_per_day'?" in err) == (2, True)
