"""Old rows leave: archived and compared first, or deleted, with their partitions or in slices."""

from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from faena import Faena
from faena.errors import StoreUnavailable
from faena.pg import Archive, Connection, Expired, Postgres
from faena.pg.archive import fence
from faena.pg.archive.content import read_lines
from faena.pg.archive.directory import DirectoryStore
from faena.pg.archive.fence import Busy, Fence, Superseded
from faena.pg.archive.store import open_store

NOW = datetime(2025, 3, 1, 12, tzinfo=UTC)


async def run(pg: Postgres, *statements: str) -> list[Any]:
    async with pg.transaction() as connection:
        for one in statements:
            found = await connection.execute(one.encode())
        return await found.fetchall() if found.description else []


PLAIN = """
    CREATE TABLE visits (id int PRIMARY KEY, org text, at timestamptz NOT NULL, note text);
    CREATE INDEX ON visits (at);
    INSERT INTO visits SELECT n, CASE WHEN n % 7 > 0 THEN 'o' || n % 3 END,
        '2025-03-01 00:00+00'::timestamptz - n * interval '1 hour', repeat('x', n % 10)
      FROM generate_series(1, 240) n;
"""
PARTITIONED = """
    CREATE TABLE pings (id int, org text, at timestamptz, v numeric, PRIMARY KEY (id, at))
      PARTITION BY RANGE (at);
"""


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(to=tmp_path / "archives", rows=37)


async def partitioned(pg: Postgres) -> None:
    """Ten days of pings, in daily partitions."""
    await run(pg, PARTITIONED)
    table = pg.partitioned("pings", by="at", every="day", ahead=1, tenant="org")
    await table.ensure(at=NOW, since=datetime(2025, 2, 19, tzinfo=UTC).date())
    await run(
        pg,
        "INSERT INTO pings SELECT n, CASE WHEN n % 7 > 0 THEN 'o' || n % 3 END,"
        " '2025-03-01 00:00+00'::timestamptz - n * interval '1 hour', n / 3.0"
        " FROM generate_series(1, 240) n",
    )


async def archived(pg: Postgres, table: str, tenant: str | None = None) -> list[dict[str, Any]]:
    """All rows that count as archived."""
    found: list[dict[str, Any]] = []
    for one in await pg.archives(table, tenant=tenant):
        async for lines in read_lines(open_store(one.store), one.key, one.sha256):
            found += [json.loads(line) for line in lines]
    return found


async def test_old_rows_of_a_plain_table_leave_in_whole_days(
    pg: Postgres, archive: Archive
) -> None:
    await run(pg, PLAIN)
    pg.retain("visits", by="at", keep="5d", tenant="org", then=archive)
    (done,) = await pg.archive(at=NOW)
    assert (done.table, done.rows, done.problem) == ("public.visits", 120, None)
    assert await run(pg, "SELECT count(*), min(at)::text FROM visits") == [
        (120, "2025-02-24 00:00:00+00")
    ]
    rows = await archived(pg, "visits")
    assert sorted(int(one["id"]) for one in rows) == list(range(121, 241))
    assert {one["org"] for one in await archived(pg, "visits", "o1")} == {"o1"}
    assert (await pg.archive(at=NOW))[0].rows == 0
    views = await pg.archives("visits")
    assert {one.tenant for one in views} == {"o0", "o1", "o2", None}
    for one in views:
        assert one.end - one.start == timedelta(days=1)
        assert one.start <= one.first_at <= one.last_at < one.end


async def test_old_partitions_leave_whole_and_are_dropped(pg: Postgres, archive: Archive) -> None:
    await partitioned(pg)
    pg.retain("pings", keep="5d", then=archive)
    (done,) = await pg.archive(at=NOW)
    assert (done.rows, done.problem) == (120, None)
    assert await run(pg, "SELECT count(*), min(at)::text FROM pings") == [
        (120, "2025-02-24 00:00:00+00")
    ]
    assert await run(pg, "SELECT to_regclass('pings_20250219')") == [(None,)]
    rows = await archived(pg, "pings")
    assert sorted(int(one["id"]) for one in rows) == list(range(121, 241))
    assert len(await pg.archives("pings", states=("verified", "writing", "discarded"))) == 0
    assert (await pg.archive(at=NOW))[0].rows == 0


@pytest.mark.parametrize("is_split", [False, True])
async def test_rows_that_are_only_deleted_are_aggregated_in_the_same_transaction(
    pg: Postgres, is_split: bool
) -> None:
    await (partitioned(pg) if is_split else run(pg, PLAIN))
    table = "pings" if is_split else "visits"
    await run(pg, "CREATE TABLE stats (org text, n bigint)")
    pg.retain(
        table,
        by="at",
        keep="5d",
        tenant="org",
        then="delete",
        aggregate="INSERT INTO stats SELECT org, count(*) FROM faena_expired GROUP BY 1",
    )
    (done,) = await pg.archive(at=NOW)
    assert (done.rows, done.objects, done.problem) == (120, 0, None)
    assert await run(pg, "SELECT sum(n)::int FROM stats") == [(120,)]
    assert await run(pg, f"SELECT count(*) FROM {table}") == [(120,)]
    assert await run(pg, "SELECT to_regclass('pg_temp.faena_expired')") == [(None,)]


async def test_a_function_aggregates_with_the_transaction_and_the_period(
    pg: Postgres, archive: Archive
) -> None:
    await run(pg, PLAIN, "CREATE TABLE stats (day date, n int)")

    async def roll_up(connection: Connection, expired: Expired) -> None:
        assert expired.table == "public.visits"
        await connection.execute(
            "INSERT INTO stats SELECT %s, count(*) FROM faena_expired", [expired.start.date()]
        )

    pg.retain("visits", by="at", keep="5d", then=archive, aggregate=roll_up)
    assert (await pg.archive(at=NOW))[0].problem is None
    assert await run(pg, "SELECT day::text, sum(n)::int FROM stats GROUP BY 1 ORDER BY 1") == [
        (f"2025-02-{day}", 24) for day in range(19, 24)
    ]


async def test_an_aggregate_that_fails_deletes_nothing(pg: Postgres, archive: Archive) -> None:
    await run(pg, PLAIN)
    pg.retain(
        "visits", by="at", keep="5d", then=archive, aggregate="INSERT INTO nowhere VALUES (1)"
    )
    (done,) = await pg.archive(at=NOW)
    assert done.problem is not None
    assert "nowhere" in done.problem
    assert await run(pg, "SELECT count(*) FROM visits") == [(240,)]
    assert await pg.archives("visits") == []


async def test_partitions_are_only_detached_if_so_declared(pg: Postgres) -> None:
    await partitioned(pg)
    pg.retain("pings", keep="5d", then="detach")
    assert (await pg.archive(at=NOW))[0].problem is None
    assert await run(pg, "SELECT count(*) FROM pings") == [(120,)]
    assert await run(pg, "SELECT count(*) FROM pings_20250219") == [(24,)]


async def test_what_would_leave_is_shown_without_a_change(pg: Postgres, archive: Archive) -> None:
    await run(pg, PLAIN)
    pg.retain("visits", by="at", keep="5d", legal="3d", tenant="org", then=archive, every="week")
    pg.retain("nobody", keep="5d", then="delete")
    (view, other) = await pg.retention_views(at=NOW)
    assert view.cutoff == datetime(2025, 2, 24, 12, tzinfo=UTC)
    assert view.waiting == ("2025-02-17 to 2025-02-24",)
    assert (view.keep, view.legal, view.then, view.rows, view.last_run) == (
        "5d",
        "3d",
        "archive",
        0,
        None,
    )
    assert other.problems == ("table nobody does not exist",)
    assert await run(pg, "SELECT count(*) FROM visits") == [(240,)]
    done = await pg.archive(at=NOW)
    assert [one.problem for one in done] == [None, "table nobody does not exist"]
    (view, _) = await pg.retention_views(at=NOW)
    assert (view.rows, view.waiting) == (120, ())
    assert view.last_run is not None
    assert (view.last_run.step, view.last_run.rows) == ("ended", 120)


# -- rows that change -----------------------------------------------------------------------------


async def changed_meanwhile(pg: Postgres, monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    """Another program writes between the export and the deletion, once."""
    from faena.pg.archive import archiver

    original, is_done = archiver.each, False

    async def each(*args: Any) -> None:
        nonlocal is_done
        await original(*args)
        if not is_done:
            is_done = True
            await run(pg, statement)

    monkeypatch.setattr(archiver, "each", each)


CHANGES = {
    "update": "UPDATE {} SET id = id + 1000 WHERE id = 235",
    "insert": "INSERT INTO {} VALUES (9000, 'o1', '2025-02-19 03:30+00')",
    "insert of a new tenant": "INSERT INTO {} VALUES (9000, 'o11', '2025-02-19 03:30+00')",
    "delete": "DELETE FROM {} WHERE id = 235",
    "giving up of the archive": "UPDATE faena.archives SET state = 'discarded'",
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("is_split", [False, True])
async def test_rows_are_exported_again_after_a_change_between_export_and_deletion(
    pg: Postgres, archive: Archive, monkeypatch: pytest.MonkeyPatch, change: str, is_split: bool
) -> None:
    await (partitioned(pg) if is_split else run(pg, PLAIN))
    table = "pings" if is_split else "visits"
    pg.retain(table, by="at", keep="9d", tenant="org", then=archive)
    before = {row[0] for row in await run(pg, f"SELECT id FROM {table}")}
    await changed_meanwhile(pg, monkeypatch, CHANGES[change].format(table))
    (done,) = await pg.archive(at=NOW)
    assert done.problem is None
    wanted = {
        "update": before - {235} | {1235},
        "insert": before | {9000},
        "insert of a new tenant": before | {9000},
        "delete": before - {235},
        "giving up of the archive": before,
    }[change]
    here = [row[0] for row in await run(pg, f"SELECT id FROM {table}")]
    there = [int(one["id"]) for one in await archived(pg, table)]
    assert sorted(here + there) == sorted(wanted)
    assert len(there) >= 23
    checked = await pg.verify_archives(table)
    assert (checked.problems, checked.unknown) == ((), ())


async def test_rows_that_change_all_the_time_stay(
    pg: Postgres, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    from faena.pg.archive import archiver

    await run(pg, PLAIN)
    original = archiver.each

    async def each(*args: Any) -> None:
        await original(*args)
        await run(pg, "UPDATE visits SET note = note || '!' WHERE id = 240")

    monkeypatch.setattr(archiver, "each", each)
    pg.retain("visits", by="at", keep="9d", then=archive)
    (done,) = await pg.archive(at=NOW)
    assert "change all the time" in (done.problem or "")
    assert await run(pg, "SELECT count(*) FROM visits") == [(240,)]
    assert await pg.archives("visits") == []


async def test_two_archivers_at_once_move_each_row_once(pg: Postgres, archive: Archive) -> None:
    await run(pg, PLAIN)
    pg.retain("visits", by="at", keep="5d", tenant="org", then=archive)
    both = await asyncio.gather(*(pg.archive(at=NOW, lease="10s") for _ in range(2)))
    assert sorted(one.rows for (one,) in both) == [0, 120]
    rows = await archived(pg, "visits")
    assert sorted(int(one["id"]) for one in rows) == list(range(121, 241))


async def test_whoever_was_taken_over_proves_nothing_any_more(pg: Postgres) -> None:
    first, second = (Fence(pg, "public.visits", 0.01) for _ in range(2))
    await first.take()
    async with pg.transaction() as connection:
        await first.prove(connection)
    await second.take()
    with pytest.raises(Superseded, match="another process has taken over"):
        async with pg.transaction() as connection:
            await first.prove(connection)
    async with pg.transaction() as connection:
        await first.note(connection, NOW, NOW, 5)
        await first.count(connection, 5, 5)
    await first.end("late")
    assert await run(pg, "SELECT detaching, rows, ended_at FROM faena.archive_runs") == [
        (None, 0, None)
    ]


async def test_a_table_that_another_process_archives_is_busy(
    pg: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    await Fence(pg, "public.visits", 0.01).take()
    monkeypatch.setattr(fence, "monotonic", itertools.count(0, 1000).__next__)
    with pytest.raises(Busy, match=r"another process archives public\.visits now"):
        await Fence(pg, "public.visits", 600.0).take()


@pytest.mark.parametrize("is_split", [False, True])
async def test_an_object_stored_after_another_took_over_is_removed(
    pg: Postgres, database: str, archive: Archive, monkeypatch: pytest.MonkeyPatch, is_split: bool
) -> None:
    await (partitioned(pg) if is_split else run(pg, PLAIN))
    table, original, puts = "pings" if is_split else "visits", DirectoryStore.put, itertools.count()
    pg.retain(table, by="at", keep="5d", tenant="org", then=archive)

    async def put(self: Any, key: str, blob: bytes) -> None:
        if next(puts) == 0:
            async with Postgres(Faena("other"), database) as other:
                other.retain(table, by="at", keep="5d", tenant="org", then=archive)
                assert (await other.archive(at=NOW, lease="50ms"))[0].rows == 120
        await original(self, key, blob)

    monkeypatch.setattr(DirectoryStore, "put", put)
    (done,) = await pg.archive(at=NOW, lease="10m")
    assert "another process has taken over" in (done.problem or "")
    rows = await archived(pg, table)
    assert sorted(int(one["id"]) for one in rows) == list(range(121, 241))
    assert isinstance(archive.to, Path)
    stored = {one.key async for one in open_store(archive.to).list("")}
    assert {one for one in stored if one.endswith(".zst")} == {
        one.key for one in await pg.archives(table)
    }
    assert len(stored) == 2 * len(await pg.archives(table))


async def test_an_export_of_a_partition_continues_where_it_was(
    pg: Postgres, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    await partitioned(pg)
    pg.retain("pings", keep="9d", then=replace(archive, rows=5))
    puts = itertools.count()
    original = DirectoryStore.put

    async def put(self: Any, key: str, blob: bytes) -> None:
        if next(puts) > 6:
            raise StoreUnavailable("the disk is away")
        await original(self, key, blob)

    monkeypatch.setattr(DirectoryStore, "put", put)
    assert "the disk is away" in ((await pg.archive(at=NOW))[0].problem or "")
    monkeypatch.undo()
    before = await pg.archives("pings", states=("verified",))
    assert before
    assert (await pg.archive(at=NOW))[0].problem is None
    after = {one.id for one in await pg.archives("pings")}
    assert {one.id for one in before} < after
    assert len(await archived(pg, "pings")) == 24


# -- the daily job --------------------------------------------------------------------------------


async def test_the_daily_job_reports_progress_and_tells_what_failed(
    app: Faena, h: Any, pg: Postgres, archive: Archive, caplog: pytest.LogCaptureFixture
) -> None:
    await run(pg, PLAIN)
    pg.retain("visits", by="at", keep="5d", then=archive)
    pg.retain("nobody", keep="5d", then="delete")
    (view,) = await app.schedules.list()
    assert (view.name, view.queue, view.when) == ("archive-old-rows", "scheduler", "0 3 * * * UTC")
    await h.drain(through="86401s")  # once, whatever the hour
    assert await run(pg, "SELECT count(*) FROM visits") == [(0,)]
    assert "retention of nobody: table nobody does not exist" in caplog.text
    (job, *_) = (await app.queues["scheduler"].jobs("completed")).jobs
    assert job.progress["rows"] == 240
    events = app.events(kinds="archive_failed", since="start")
    event = await anext(events)
    assert (event.value, event.reason) == ("nobody", "table nobody does not exist")
    await events.aclose()
