"""Aggregates of periods whose rows retention has removed stay as they were."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from faena import Faena
from faena.errors import StoreRejected
from faena.pg import Archive, Postgres, Rollup
from faena.pg.archive.deletion import delete_slice
from faena.pg.archive.removal import removed_before
from faena.pg.partition.catalog import find_table
from faena.pg.partition.name import read_name
from faena.pg.rollup import rollup as rollups

FIRST, LAST = date(2020, 1, 6), date(2020, 1, 19)  # two weeks
PLAIN = """
    CREATE TABLE jobs (id int PRIMARY KEY, created_at timestamptz NOT NULL, ended_at timestamp);
    INSERT INTO jobs SELECT n, timestamptz '2020-01-06 12:00Z' + n * interval '1 day',
        timestamp '2020-03-06 12:00' + n * interval '1 day' FROM generate_series(0, 13) n
"""
PARTED = """
    CREATE TABLE jobs (id int, created_at timestamptz, ended_at timestamp,
        PRIMARY KEY (id, created_at)) PARTITION BY RANGE (created_at);
    CREATE TABLE jobs_y2020m01 PARTITION OF jobs
        FOR VALUES FROM ('2020-01-01Z') TO ('2020-02-01Z');
    INSERT INTO jobs SELECT n, timestamptz '2020-01-06 12:00Z' + n * interval '1 day',
        timestamp '2020-03-06 12:00' + n * interval '1 day' FROM generate_series(0, 13) n
"""


async def rows(pg: Postgres, statements: str) -> list[Any]:
    async with pg.transaction() as connection:
        found = await connection.execute(statements.encode())
        return await found.fetchall() if found.description else []


def declare(pg: Postgres, every: Any = "day", by: str = "created_at", tz: str = "UTC") -> Rollup:
    given: dict[str, Any] = {"of": "jobs", "every": every, "by": by, "tz": tz}
    return pg.rollup(f"jobs_per_{every}", **given, measures={"n": "count(*)"})


@pytest.mark.parametrize("table", [PLAIN, PARTED], ids=["plain", "partitioned"])
@pytest.mark.parametrize("then", ["archive", "delete"])
async def test_a_backfill_over_removed_rows_is_refused_and_wipes_nothing(
    app: Faena, pg: Postgres, database: str, tmp_path: Path, table: str, then: Any
) -> None:
    await rows(pg, table)
    days = declare(pg)
    await days.backfill(FIRST, LAST)
    # another program, which declares no roll-up
    async with Postgres(app, database, relay=False) as other:
        other.retain("jobs", keep="1y", then=Archive(to=tmp_path) if then == "archive" else then)
        (done,) = await other.archive()
    assert (done.rows, done.problem) == (14, None)
    for work in (days.run(FIRST), days.run(LAST), days.backfill(FIRST, LAST)):
        with pytest.raises(StoreRejected, match=r"retention of public.jobs has removed rows of it"):
            await work
    assert await rows(pg, "SELECT count(*), sum(n) FROM jobs_per_day") == [(14, 14)]
    view = await days.view()
    assert view.sealed_before == date(2020, 2, 1) if table is PARTED else date(2020, 1, 20)


async def test_rows_that_are_detached_are_gone_too(pg: Postgres) -> None:
    await rows(pg, PARTED)
    days = declare(pg)
    await days.backfill(FIRST, LAST)
    pg.retain("jobs", keep="1y", then="detach")
    await pg.archive()
    with pytest.raises(StoreRejected, match="compute periods from 2020-02-01 on"):
        await days.run(LAST)
    assert await days.run(date(2020, 2, 1))


async def test_a_week_of_which_one_day_has_left_is_not_computed_again(pg: Postgres) -> None:
    await rows(pg, PLAIN)
    await rows(pg, "UPDATE jobs SET created_at = now() - interval '1 day' WHERE id > 8")
    weeks = declare(pg, "week")
    await weeks.backfill(FIRST, LAST)
    pg.retain("jobs", keep="1y", then="delete")  # up to Tuesday of the second week
    await pg.archive()
    with pytest.raises(StoreRejected, match="the week of 2020-01-13 must not be computed again"):
        await weeks.run(date(2020, 1, 19))
    await weeks.run(date(2020, 1, 20))
    assert await rows(pg, "SELECT sum(n) FROM jobs_per_week") == [(9,)]


@pytest.mark.parametrize(
    ("tz", "day"), [("America/Argentina/Buenos_Aires", 20), ("UTC", 20), ("Asia/Tokyo", 21)]
)
async def test_a_day_of_a_time_zone_that_has_left_in_part_is_not_computed_again(
    pg: Postgres, tz: str, day: int
) -> None:
    """Rows leave at midnight in UTC, which is at 21:00 in one and at 9:00 in the other."""
    await rows(pg, PLAIN)
    days = declare(pg, tz=tz)
    await days.backfill(FIRST, LAST)
    pg.retain("jobs", keep="1y", then="delete")
    await pg.archive()
    with pytest.raises(StoreRejected, match=f"compute periods from 2020-01-{day} on"):
        await days.run(date(2020, 1, day - 1))
    await days.run(date(2020, 1, day))
    assert await rows(pg, "SELECT count(*), sum(n) FROM jobs_per_day") == [(14, 14)]


async def test_a_roll_up_by_another_column_is_guarded_up_to_its_newest_removed_row(
    pg: Postgres,
) -> None:
    await rows(pg, PLAIN)
    days = declare(pg, by="ended_at")
    await days.backfill(date(2020, 3, 6), date(2020, 3, 19))
    pg.retain("jobs", keep="1y", then="delete")
    await pg.archive()
    with pytest.raises(StoreRejected, match="compute periods from 2020-03-20 on"):
        await days.run(date(2020, 3, 19))
    await days.run(date(2020, 3, 20))


@pytest.mark.parametrize("ended_at", ["'infinity'", "NULL"])
async def test_a_removed_row_without_an_end_closes_no_later_period(
    pg: Postgres, ended_at: str
) -> None:
    await rows(pg, PLAIN)
    await rows(pg, f"UPDATE jobs SET ended_at = {ended_at} WHERE id = 3")
    days = declare(pg, by="ended_at")
    await days.backfill(date(2020, 3, 6), date(2020, 3, 19))
    pg.retain("jobs", keep="1y", then="delete")
    await pg.archive()
    with pytest.raises(StoreRejected, match="compute periods from 2020-03-20 on"):
        await days.run(date(2020, 3, 19))
    await days.run(date(2020, 3, 20))


async def test_a_removed_row_at_midnight_closes_the_day_that_it_begins(pg: Postgres) -> None:
    await rows(pg, PLAIN)
    await rows(pg, "UPDATE jobs SET ended_at = '2020-03-20' WHERE id = 3")
    days = declare(pg, by="ended_at")
    await days.backfill(date(2020, 3, 6), date(2020, 3, 20))
    pg.retain("jobs", keep="1y", then="delete")
    await pg.archive()
    with pytest.raises(StoreRejected, match="compute periods from 2020-03-21 on"):
        await days.run(date(2020, 3, 20))
    assert await rows(pg, "SELECT sum(n) FROM jobs_per_day") == [(14,)]


async def test_of_a_seal_and_a_removal_the_later_one_counts(pg: Postgres) -> None:
    await rows(pg, PLAIN)
    days = declare(pg)
    await days.backfill(FIRST, LAST)
    pg.retain("jobs", keep="1y", then="delete")
    await pg.archive()
    for seal, closed in ((date(2020, 1, 10), LAST), (date(2020, 2, 1), date(2020, 1, 31))):
        await days.seal(seal)
        with pytest.raises(StoreRejected, match="must not be computed again"):
            await days.run(closed)
        assert (await days.view()).sealed_before == closed + timedelta(days=1)


async def test_rows_that_a_partitions_own_retention_removes_are_gone_from_its_table(
    pg: Postgres,
) -> None:
    await rows(pg, PARTED)
    days = declare(pg)
    await days.backfill(FIRST, LAST)
    pg.retain("jobs_y2020m01", keep="1y", then="delete")
    assert [one.rows for one in await pg.archive()] == [14]
    with pytest.raises(StoreRejected, match="compute periods from 2020-01-20 on"):
        await days.run(LAST)
    assert await rows(pg, "SELECT sum(n) FROM jobs_per_day") == [(14,)]


async def test_rows_that_the_retention_of_a_table_removes_are_gone_from_a_partition(
    pg: Postgres,
) -> None:
    """It comes back as it left: attached again, without what it had."""
    await rows(pg, PARTED)
    days = pg.rollup("days", of="jobs_y2020m01", every="day", measures={"n": "count(*)"})
    await days.backfill(FIRST, LAST)
    pg.retain("jobs", keep="1y", then="delete")
    assert [one.rows for one in await pg.archive()] == [14]
    await rows(
        pg,
        "CREATE TABLE jobs_y2020m01 PARTITION OF jobs FOR VALUES FROM ('2020-01-01Z')"
        " TO ('2020-02-01Z')",
    )
    with pytest.raises(StoreRejected, match="compute periods from 2020-02-01 on"):
        await days.run(LAST)
    assert await rows(pg, "SELECT sum(n) FROM days") == [(14,)]


async def test_rows_that_leave_while_a_period_is_computed_take_the_run_back(
    pg: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rows(pg, PLAIN)
    days = declare(pg)
    await days.backfill(FIRST, LAST)
    pg.retain("jobs", keep="1y", then="delete")
    replace = Rollup._replace

    async def late(self: Rollup, *given: Any) -> None:
        await pg.archive()  # between the look at the seal and the sum
        await replace(self, *given)

    monkeypatch.setattr(rollups.Rollup, "_replace", late)
    with pytest.raises(StoreRejected, match="has removed rows of it"):
        await days.run(FIRST)
    assert await rows(pg, "SELECT count(*) FROM jobs_per_day") == [(14,)]


async def test_a_current_period_that_has_lost_rows_is_a_problem_of_the_daily_run(
    pg: Postgres,
) -> None:
    await rows(
        pg,
        "CREATE TABLE jobs (id int PRIMARY KEY, created_at timestamptz NOT NULL);"
        "INSERT INTO jobs VALUES (1, now() - interval '40 days')",
    )
    months = declare(pg, "month")
    await months.run_recent()
    await rows(
        pg,
        "INSERT INTO faena.removals VALUES ('public.jobs', 'created_at', now(), 'jobs'::regclass,"
        " 'faena.removals'::regclass)",
    )
    done = await pg.run_rollups()
    assert "has removed rows of it" in done.problems["jobs_per_month"][0]


async def test_a_renamed_table_is_known_and_another_of_its_oid_in_a_copy_is_not(
    pg: Postgres,
) -> None:
    await rows(pg, PLAIN)
    pg.retain("jobs", keep="1y", then="delete")
    await pg.archive()
    await rows(pg, "ALTER TABLE jobs RENAME TO works")

    async def look() -> Any:
        async with pg.transaction("rollup") as connection:
            table = await find_table(connection, read_name("works"))
            return await removed_before(connection, table, "created_at")

    assert await look() is not None
    await rows(pg, "UPDATE faena.removals SET home = 1")
    assert await look() is None


async def test_a_deletion_that_is_taken_back_has_removed_nothing(
    pg: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rows(pg, PLAIN)
    pg.retain("jobs", keep="1y", then="delete")

    async def fail(*given: Any) -> int:
        await delete_slice(*given)
        raise StoreRejected("no", op="archive")

    monkeypatch.setattr("faena.pg.archive.archiver.delete_slice", fail)
    await pg.archive()
    assert await rows(pg, "SELECT count(*) FROM faena.removals") == [(0,)]
