"""What must not be deleted stays: wrong years, lost objects, new columns, protections evaded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from faena.errors import StoreRejected
from faena.pg import FOREVER, Archive, Bucket, Postgres
from faena.pg.archive.archiver import Archiver
from faena.pg.archive.content import read_lines
from faena.pg.archive.run import Archived, Run
from faena.pg.archive.store import open_store
from tests._support.eventually import eventually

NOW = datetime(2025, 3, 1, tzinfo=UTC)
ROWS = 20
PLAIN = f"""
    CREATE TABLE v (id int PRIMARY KEY, org text, at timestamptz NOT NULL, born date NOT NULL);
    INSERT INTO v SELECT n, 'o' || n % 2, '2025-01-03 00:00+00'::timestamptz + n * interval '1h',
        '1980-01-01' FROM generate_series(1, {ROWS}) n
"""
SPLIT = f"""
    CREATE TABLE v (id int, org text, at timestamptz, other int, PRIMARY KEY (id, at))
        PARTITION BY RANGE (at);
    CREATE TABLE v_1 PARTITION OF v
        FOR VALUES FROM ('2025-01-01 00:00+00') TO ('2025-02-01 00:00+00');
    INSERT INTO v SELECT n, 'o' || n % 2, '2025-01-03 00:00+00', n FROM generate_series(1, {ROWS}) n
"""


class Died(BaseException):
    """As if the process were killed."""


@pytest.fixture
def run(database: str) -> Callable[..., list[Any]]:
    """Statements of another program, each committed at once."""

    def execute(*statements: str) -> list[Any]:
        with psycopg.connect(database, autocommit=True) as connection:
            found = [connection.execute(one.encode()) for one in statements][-1]
            return found.fetchall() if found.description else []

    return execute


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(to=tmp_path / "archives", rows=6)


async def carried_out(
    pg: Postgres, table: str = "v", *, at: datetime | None = NOW, **options: Any
) -> Archived:
    """A run of a program with this policy alone."""
    pg.retentions.clear()
    pg.retain(table, **options)
    (done,) = await pg.archive(at=at, lease="100ms")
    return done


def number(run: Callable[..., list[Any]], table: str = "v") -> int:
    return run(f"SELECT count(*) FROM {table}")[0][0]


async def die(pg: Postgres, monkeypatch: pytest.MonkeyPatch, where: Any, options: Any) -> None:
    """Begin a run that ends like a killed process."""
    owner, name = where

    async def killed(*_: Any) -> None:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, killed)
        with pytest.raises(Died):
            await carried_out(pg, **options)


def lose(archive: Archive, how: str) -> None:
    for one in Path(str(archive.to)).rglob("*.zst"):
        one.unlink() if how == "removed" else one.write_bytes(b"x")


BEFORE_DETACH = (Run, "_detach")
BEFORE_DROP = (Archiver, "drop")


# -- years ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("type_", ["timestamptz", "timestamp", "date"])
async def test_a_mistyped_year_deletes_nothing_of_this_one(
    pg: Postgres, run: Callable[..., list[Any]], type_: str
) -> None:
    run(
        f"CREATE TABLE v (id int PRIMARY KEY, at {type_} NOT NULL)",
        "INSERT INTO v SELECT n, now() - interval '1 day' FROM generate_series(1, 9) n",
        "INSERT INTO v SELECT 1000, ('00' || to_char(now() - interval '1 day', 'YY-MM-DD'))::date",
    )
    done = await carried_out(pg, at=None, by="at", keep="10y", legal="10y", then="delete")
    assert (done.rows, done.problem) == (1, None)
    assert run("SELECT count(*), max(id) FROM v") == [(9, 9)]


async def test_the_deleting_statement_itself_knows_how_old_rows_must_be(
    pg: Postgres, run: Callable[..., list[Any]], archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever goes wrong before it: here the run takes 2025 for the oldest year to keep."""

    async def late(*_: Any) -> datetime:
        return NOW

    run(PLAIN)
    monkeypatch.setattr(Run, "_cutoff", late)
    for then in ("delete", archive):
        done = await carried_out(pg, by="at", keep="10y", then=then)
        assert "must be older than 10y" in (done.problem or "")
    run("DROP TABLE v", SPLIT)
    done = await carried_out(pg, by="at", keep="10y", then="delete")
    assert "must be older than 10y" in (done.problem or "")
    assert number(run, "v_1") == ROWS


@pytest.mark.parametrize("young", ["o0", "o1"])
async def test_young_rows_of_one_tenant_keep_old_ones_of_another_in_their_period(
    pg: Postgres,
    run: Callable[..., list[Any]],
    archive: Archive,
    monkeypatch: pytest.MonkeyPatch,
    young: str,
) -> None:
    async def late(*_: Any) -> datetime:
        return datetime.now(UTC)

    today = datetime.now(UTC).date()
    middle = (today.replace(day=15) - timedelta(days=45)).replace(day=15)
    run(PLAIN, "DELETE FROM v WHERE id > 2", f"UPDATE v SET at = '{middle.replace(day=10)}'")
    run(f"UPDATE v SET at = '{middle.replace(day=20)}' WHERE org = '{young}'")
    monkeypatch.setattr(Run, "_cutoff", late)
    given: dict[str, Any] = {"by": "at", "tenant": "org", "keep": f"{(today - middle).days}d"}
    done = await carried_out(pg, at=None, every="month", then=archive, **given)
    assert "must be older than" in (done.problem or "")
    assert number(run) == 2


async def test_rows_of_years_that_python_cannot_hold_stay(
    pg: Postgres, run: Callable[..., list[Any]]
) -> None:
    run(PLAIN, "UPDATE v SET at = '20000-01-01' WHERE id = 1")
    run("UPDATE v SET at = '0044-03-15 BC' WHERE id = 2")
    done = await carried_out(pg, by="at", keep="2d", then="delete")
    assert (done.rows, done.problem) == (ROWS - 2, None)
    assert run("SELECT id FROM v ORDER BY 1") == [(1,), (2,)]


# -- archives and columns -------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["removed", "damaged"])
@pytest.mark.parametrize("where", [BEFORE_DETACH, BEFORE_DROP])
async def test_objects_of_an_interrupted_run_are_read_again_before_their_rows_go(
    pg: Postgres,
    run: Callable[..., list[Any]],
    archive: Archive,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
    where: Any,
) -> None:
    run(SPLIT)
    options = {"by": "at", "keep": "2d", "tenant": "org", "then": archive}
    await die(pg, monkeypatch, where, options)
    assert run("SELECT sum(rows) FROM faena.archives WHERE state = 'verified'") == [(ROWS,)]
    lose(archive, how)
    done = await carried_out(pg, **options)
    assert (done.rows, done.problem) == (ROWS, None)
    checked = await pg.verify_archives("v")
    assert (checked.rows, checked.problems) == (ROWS, ())


@pytest.mark.parametrize("made", [PLAIN, SPLIT])
async def test_a_column_that_is_added_during_a_run_is_not_lost(
    pg: Postgres, run: Callable[..., list[Any]], archive: Archive, made: str
) -> None:
    run(made)
    left: list[int] = []

    def report(_: Any) -> None:
        if not left:
            run("ALTER TABLE v ADD COLUMN note text", "UPDATE v SET note = 'precious'")
            left.append(number(run))

    options = {"by": "at", "keep": "2d", "tenant": "org", "then": archive}
    pg.retain("v", **options)
    (done,) = await pg.archive(at=NOW, report=report)
    assert "columns of public.v have changed" in (done.problem or "")
    assert (await carried_out(pg, **options)).problem is None
    noted = 0
    for one in await pg.archives("v"):
        async for lines in read_lines(open_store(one.store), one.key, one.sha256):
            noted += sum(b"precious" in line for line in lines)
    assert noted == left[0]


# -- protections ----------------------------------------------------------------------------------

SHORT: dict[str, Any] = {"by": "at", "keep": "2d", "then": "delete"}
TEN: dict[str, Any] = {"by": "at", "keep": "10y", "legal": "10y", "then": "delete"}


async def test_a_protection_that_is_not_committed_yet_is_waited_for(
    pg: Postgres, database: str, run: Callable[..., list[Any]]
) -> None:
    run(PLAIN)
    with psycopg.connect(database) as first:
        first.execute(
            "INSERT INTO faena.retentions (table_name, keep, legal)"
            " VALUES ('public.v', 'forever', 'forever')"
        )
        second = asyncio.create_task(carried_out(pg, **SHORT))
        await eventually(
            lambda: (
                run("SELECT count(*) FROM pg_locks WHERE NOT granted") != [(0,)] or second.done()
            )
        )
        first.commit()
        assert "protected for ever" in ((await second).problem or "")
    assert number(run) == ROWS
    assert run("SELECT legal FROM faena.retentions") == [("forever",)]


async def test_a_partition_is_protected_as_its_table_and_a_table_as_its_partitions(
    pg: Postgres, run: Callable[..., list[Any]]
) -> None:
    run(SPLIT)
    for whole, part in (("v", "v_1"), ("v_1", "v")):
        run("TRUNCATE faena.retentions")
        assert (await carried_out(pg, whole, keep=FOREVER)).problem is None
        done = await carried_out(pg, part, **SHORT)
        assert f"protected for ever as public.{whole}" in (done.problem or "")
        assert f"archive lower public.{whole}`" in (done.problem or "")
    assert number(run) == ROWS


async def test_a_table_keeps_its_protection_when_it_is_renamed(
    pg: Postgres, run: Callable[..., list[Any]]
) -> None:
    run(PLAIN)
    assert (await carried_out(pg, keep=FOREVER)).problem is None
    run("ALTER TABLE v RENAME TO w", "CREATE TABLE v (LIKE w INCLUDING ALL)")
    assert (await carried_out(pg, keep=FOREVER)).problem is None
    done = await carried_out(pg, "w", **SHORT)
    assert "protected for ever as public.v" in (done.problem or "")
    assert number(run, "w") == ROWS
    assert await pg.lower_protection("w", None) == "public.w"
    assert (await carried_out(pg, "w", **SHORT)).rows == ROWS


async def test_another_column_for_the_age_is_allowed_only_on_purpose(
    pg: Postgres, run: Callable[..., list[Any]]
) -> None:
    run(PLAIN)
    assert (await carried_out(pg, **TEN)).problem is None
    done = await carried_out(pg, **{**TEN, "by": "born"})
    assert "10y by the column at, and must not leave by born" in (done.problem or "")
    assert number(run) == ROWS
    await pg.lower_protection("v", "10y")
    assert (await carried_out(pg, **{**TEN, "by": "born"})).rows == ROWS


async def test_nobody_can_say_that_it_is_later_than_it_is(
    pg: Postgres, run: Callable[..., list[Any]]
) -> None:
    run(PLAIN)
    done = await carried_out(pg, at=datetime(2100, 1, 1, tzinfo=UTC), **TEN)
    assert "at must not be after the server's clock" in (done.problem or "")
    assert number(run) == ROWS


async def test_a_protection_recorded_during_a_run_ends_it(
    pg: Postgres, run: Callable[..., list[Any]], archive: Archive
) -> None:
    run(PLAIN)

    def report(_: Any) -> None:
        run("UPDATE faena.retentions SET legal = 'forever'")

    pg.retain("v", **{**SHORT, "then": archive})
    (done,) = await pg.archive(at=NOW, report=report)
    assert "protected for ever" in (done.problem or "")
    assert (done.rows, number(run)) == (6, ROWS - 6)


async def test_a_protection_recorded_during_a_run_keeps_a_partition(
    pg: Postgres, run: Callable[..., list[Any]], archive: Archive
) -> None:
    run(SPLIT)

    def report(_: Any) -> None:
        run("UPDATE faena.retentions SET legal = 'forever'")

    pg.retain("v", **{**SHORT, "then": archive})
    (done,) = await pg.archive(at=NOW, report=report)
    assert "protected for ever" in (done.problem or "")
    assert number(run, "v_1") == ROWS


async def test_what_a_run_would_be_refused_is_a_problem_of_the_view(
    pg: Postgres, run: Callable[..., list[Any]]
) -> None:
    run(PLAIN)
    await carried_out(pg, keep=FOREVER)
    pg.retentions.clear()
    pg.retain("v", **SHORT)
    (view,) = await pg.retention_views(at=NOW)
    assert "protected for ever" in view.problems[0]
    assert view.waiting == ()


# -- interrupted, and then another policy ---------------------------------------------------------


async def test_a_detached_partition_that_is_kept_for_ever_now_is_told(
    pg: Postgres, run: Callable[..., list[Any]], archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(SPLIT)
    await die(pg, monkeypatch, BEFORE_DROP, {"by": "at", "keep": "2d", "then": archive})
    assert number(run) == 0
    done = await carried_out(pg, keep=FOREVER)
    assert "public.v_1 was detached" in (done.problem or "")
    (view,) = await pg.retention_views()
    assert "public.v_1 was detached" in view.problems[0]
    run("ALTER TABLE v ATTACH PARTITION v_1 FOR VALUES FROM ('2025-01-01') TO ('2025-02-01')")
    assert (await carried_out(pg, keep=FOREVER)).problem is None
    assert number(run) == ROWS


CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "no tenant": ("SELECT 1", {"tenant": None}),
    "another key": (
        (
            "ALTER TABLE v DROP CONSTRAINT v_pkey, ADD COLUMN uid uuid DEFAULT gen_random_uuid(),"
            " ADD PRIMARY KEY (uid, at)"
        ),
        {},
    ),
    "another key of the same columns": (
        "ALTER TABLE v DROP CONSTRAINT v_pkey, ADD PRIMARY KEY (other, at)",
        {},
    ),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_an_export_in_another_order_begins_anew(
    pg: Postgres,
    run: Callable[..., list[Any]],
    archive: Archive,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
) -> None:
    statement, other = CHANGES[change]
    run(SPLIT)
    options = {"by": "at", "keep": "2d", "tenant": "org", "then": archive}
    await die(pg, monkeypatch, BEFORE_DETACH, options)
    first = run("SELECT id FROM faena.archives")
    run(statement)
    done = await carried_out(pg, **{**options, **other})
    assert (done.rows, done.problem) == (ROWS, None)
    assert {one.id for one in await pg.archives("v")}.isdisjoint(row[0] for row in first)
    assert (await pg.verify_archives("v")).rows == ROWS


# -- stores ---------------------------------------------------------------------------------------


async def test_a_store_that_cannot_be_reached_keeps_no_other_table_from_its_run(
    pg: Postgres, run: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from faena.pg.archive import bucket

    monkeypatch.setattr(bucket, "_TRIES", 0)
    run(PLAIN, "CREATE TABLE w AS TABLE v", "ALTER TABLE w ADD PRIMARY KEY (id)")
    nowhere = Bucket(
        name="cold",
        endpoint="http://127.0.0.1:9",
        region="us-east-1",
        access_key="key",
        secret_key="hush",
    )
    pg.retain("v", by="at", keep="2d", then=Archive(to=nowhere))
    pg.retain("w", by="at", keep="2d", then="delete")
    first, second = await pg.archive(at=NOW)
    assert first.problem is not None
    assert (second.rows, second.problem) == (ROWS, None)
    assert (number(run), number(run, "w")) == (ROWS, 0)


async def test_another_service_without_keys_is_refused_and_not_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    store = open_store(Bucket(name="cold", endpoint="http://127.0.0.1:9", region="us-east-1"))
    with pytest.raises(StoreRejected, match="must have both keys, got none"):
        await store.put("a/b", b"x")


async def test_leftovers_in_a_store_that_is_gone_keep_no_row_from_leaving(
    pg: Postgres, run: Callable[..., list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from faena.pg.archive import archiver

    run(PLAIN)
    options = {"by": "at", "keep": "2d"}
    old = {**options, "then": Archive(to=tmp_path / "old")}
    await die(pg, monkeypatch, (archiver, "read_back"), old)
    for one in sorted((tmp_path / "old").rglob("*"), reverse=True):
        one.unlink() if one.is_file() else one.rmdir()
    (tmp_path / "old").rmdir()
    (tmp_path / "old").write_text("no directory")
    run("UPDATE faena.archives SET changed_at = now() - interval '8 days'")
    done = await carried_out(pg, **options, then=Archive(to=tmp_path / "new"))
    assert (done.rows, done.problem) == (ROWS, None)
    run("UPDATE faena.archives SET changed_at = now() - interval '8 days'")
    await carried_out(pg, **options, then=Archive(to=tmp_path / "new"))
    assert run("SELECT count(*) FROM faena.archives WHERE state = 'discarded'") == [(1,)]


# -- triggers and names ---------------------------------------------------------------------------


async def test_rows_that_a_trigger_keeps_are_not_aggregated(
    pg: Postgres, run: Callable[..., list[Any]]
) -> None:
    run(
        PLAIN,
        "CREATE TABLE stats (n int)",
        "CREATE FUNCTION stay() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN IF OLD.id % 3 = 0 THEN RETURN NULL; END IF; RETURN OLD; END'",
        "CREATE TRIGGER stay BEFORE DELETE ON v FOR EACH ROW EXECUTE FUNCTION stay()",
    )
    counted = "INSERT INTO stats SELECT count(*) FROM faena_expired"
    for _ in range(2):
        done = await carried_out(pg, **SHORT, aggregate=counted)
        assert "a trigger or a rule keeps the others" in (done.problem or "")
    assert (number(run), number(run, "stats")) == (ROWS, 0)


async def test_rows_that_a_trigger_would_change_are_not_restored(
    pg: Postgres, run: Callable[..., list[Any]], archive: Archive
) -> None:
    run(PLAIN)
    await carried_out(pg, by="at", keep="2d", then=archive)
    run(
        "CREATE TABLE back (LIKE v INCLUDING ALL)",
        "CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN NEW.born := now(); RETURN NEW; END'",
        "CREATE TRIGGER touch BEFORE INSERT ON back FOR EACH ROW EXECUTE FUNCTION touch()",
    )
    with pytest.raises(StoreRejected, match=r"rows would be other ones in public\.back"):
        await pg.restore("v", into="back")
    assert number(run, "back") == 0
    run("DROP TRIGGER touch ON back")
    assert (await pg.restore("v", into="back")).rows == ROWS


async def test_a_column_may_have_any_name(
    pg: Postgres, run: Callable[..., list[Any]], archive: Archive
) -> None:
    run(PLAIN, "ALTER TABLE v RENAME COLUMN org TO faena_line")
    done = await carried_out(pg, by="at", keep="2d", tenant="faena_line", then=archive)
    assert (done.rows, done.problem) == (ROWS, None)


async def test_restored_rows_would_leave_again_however_the_table_is_written(
    pg: Postgres, run: Callable[..., list[Any]], archive: Archive
) -> None:
    run(PLAIN)
    await carried_out(pg, by="at", keep="2d", then=archive)
    for name in ("v", "public.v"):
        with pytest.raises(StoreRejected, match="would be archived again"):
            await pg.restore(name)
