"""Roll-ups: each period is what its rows say, however often and by whomever it is run."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from faena import Faena
from faena.errors import ConfigError, StoreRejected
from faena.pg import Postgres, Rollup, RollupProgress
from tests._support import killed_statement
from tests._support.eventually import PATIENCE_S
from tests._support.forked import Forked
from tests._support.working import Working

TABLE = (
    "CREATE TABLE jobs (id int, org text, created_at timestamptz, day_of date, at timestamp,"
    " total numeric)"
)
MEASURES = {"jobs": "count(*)", "revenue": "sum(total)"}
NINTH = date(2025, 3, 9)


async def rows(pg: Postgres, *statements: str) -> list[Any]:
    async with pg.transaction() as connection:
        for one in statements:
            found = await connection.execute(one.encode())
        return await found.fetchall() if found.description else []


async def insert(pg: Postgres, org: str | None, at: str, total: int = 1) -> None:
    async with pg.transaction() as connection:
        await connection.execute(
            "INSERT INTO jobs (org, created_at, total, at) VALUES (%s, %s, %s,"
            " %s::timestamptz AT TIME ZONE 'UTC')",
            [org, at, total, at],
        )


@pytest.fixture
async def jobs(pg: Postgres) -> Rollup:
    await rows(pg, TABLE)
    return pg.rollup("jobs_per_day", of="jobs", every="day", group=["org"], measures=MEASURES)


async def kept(pg: Postgres, table: str = "jobs_per_day") -> list[Any]:
    return await rows(pg, f"SELECT * FROM {table} ORDER BY 1, 2 NULLS LAST")


async def test_row_level_security_that_hides_rows_is_an_error(
    pg: Postgres, database: str, jobs: Rollup
) -> None:
    await insert(pg, "acme", "2025-03-09T01:00Z", 5)
    await insert(pg, "other", "2025-03-09T02:00Z", 7)
    await jobs.run(NINTH)
    before = await kept(pg)
    await rows(
        pg,
        "DROP ROLE IF EXISTS roller_of_tests",
        "CREATE ROLE roller_of_tests LOGIN",
        "GRANT ALL ON SCHEMA public, faena TO roller_of_tests",
        "GRANT ALL ON ALL TABLES IN SCHEMA faena TO roller_of_tests",
        "ALTER TABLE jobs OWNER TO roller_of_tests",
        "ALTER TABLE jobs_per_day OWNER TO roller_of_tests",
        "ALTER TABLE jobs ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE jobs FORCE ROW LEVEL SECURITY",
        "CREATE POLICY mine ON jobs USING (org = 'acme')",
    )
    try:
        async with Postgres(pg.app, database.replace("postgres@", "roller_of_tests@")) as other:
            mine = other.rollup(
                "jobs_per_day", of="jobs", every="day", group=["org"], measures=MEASURES
            )
            with pytest.raises(StoreRejected, match="row-level security"):
                await mine.run(NINTH)
        assert await kept(pg) == before
    finally:
        await rows(pg, "DROP OWNED BY roller_of_tests CASCADE", "DROP ROLE roller_of_tests")


async def test_a_day_is_computed_and_again_when_late_rows_came_and_others_went(
    pg: Postgres, jobs: Rollup
) -> None:
    await insert(pg, "acme", "2025-03-09T00:00Z", 5)
    await insert(pg, "acme", "2025-03-09T23:59:59.999999Z", 7)
    await insert(pg, None, "2025-03-09T12:00Z")
    await insert(pg, "acme", "2025-03-10T00:00Z", 100)
    for _ in range(2):
        assert (await jobs.run(NINTH)).start == NINTH
        assert await kept(pg) == [(NINTH, "acme", 2, 12), (NINTH, None, 1, 1)]
    await insert(pg, "beta", "2025-03-09T01:00Z", 3)
    await rows(pg, "DELETE FROM jobs WHERE org IS NULL")
    await jobs.run(NINTH)
    assert await kept(pg) == [(NINTH, "acme", 2, 12), (NINTH, "beta", 1, 3)]
    await rows(pg, "DELETE FROM jobs")
    await jobs.run(NINTH)
    assert await kept(pg) == []


async def test_weeks_begin_on_monday_and_months_on_the_first(pg: Postgres) -> None:
    await rows(pg, TABLE)
    for at in ("2025-02-28T23:00Z", "2025-03-02T23:00Z", "2025-03-03T00:00Z", "2025-03-31T20:00Z"):
        await insert(pg, "acme", at)
    week = pg.rollup("jobs_per_week", of="jobs", every="week", measures={"jobs": "count(*)"})
    month = pg.rollup("jobs_per_month", of="jobs", every="month", measures={"jobs": "count(*)"})
    await week.backfill(date(2025, 2, 24), date(2025, 3, 31))
    await month.backfill(date(2025, 2, 3), date(2025, 3, 3))
    assert await rows(pg, "SELECT week, jobs FROM jobs_per_week ORDER BY 1") == [
        (date(2025, 2, 24), 2),
        (date(2025, 3, 3), 1),
        (date(2025, 3, 31), 1),
    ]
    assert await rows(pg, "SELECT month, jobs FROM jobs_per_month ORDER BY 1") == [
        (date(2025, 2, 1), 1),
        (date(2025, 3, 1), 3),
    ]


@pytest.mark.parametrize("by", ["created_at", "at"])
@pytest.mark.parametrize(
    ("zone", "day", "begins", "hours"),
    [
        ("Europe/Madrid", date(2025, 3, 30), "2025-03-29T23:00Z", 23),
        ("Europe/Madrid", date(2025, 10, 26), "2025-10-25T22:00Z", 25),
        ("America/Havana", date(2025, 11, 2), "2025-11-02T04:00Z", 25),  # midnight comes twice
        ("America/Havana", date(2025, 3, 9), "2025-03-09T05:00Z", 23),  # there is no midnight
        ("Pacific/Apia", date(2011, 12, 30), "2011-12-30T10:00Z", 0),  # there is no such day
    ],
)
async def test_days_of_a_time_zone_have_23_to_25_hours(
    pg: Postgres, by: str, zone: str, day: date, begins: str, hours: int
) -> None:
    await rows(pg, TABLE)
    first = datetime.fromisoformat(begins)
    for offset in range(-3, 30):
        await insert(pg, "acme", (first + timedelta(hours=offset)).isoformat())
    made = pg.rollup("local", of="jobs", by=by, every="day", measures={"jobs": "count(*)"}, tz=zone)
    await made.run(day)
    assert await rows(pg, "SELECT * FROM local") == ([(day, hours)] if hours else [])


async def test_processes_that_run_a_day_at_once_leave_it_once(pg: Postgres, jobs: Rollup) -> None:
    """Also where the database asks for repeatable reads."""
    await insert(pg, "acme", "2025-03-09T00:00Z")
    await rows(
        pg,
        "DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation ="
        " ''repeatable read''', current_database()); END$$",
    )
    async with Postgres(pg.app, await pg.url(), relay=False) as other:
        again = other.rollup(
            "jobs_per_day", of="jobs", every="day", group=["org"], measures=MEASURES
        )
        await asyncio.gather(*(again.run(NINTH) for _ in range(8)))
    assert await kept(pg) == [(NINTH, "acme", 1, 1)]


async def test_a_backfill_tells_its_progress_and_begins_anew_when_it_has_ended(
    pg: Postgres, jobs: Rollup
) -> None:
    for day in (3, 4, 9):
        await insert(pg, "acme", f"2025-03-0{day}T08:00Z")
    told: list[RollupProgress] = []
    last = await jobs.backfill(date(2025, 3, 1), NINTH, told.append)
    assert last == told[-1] == RollupProgress(NINTH, 9, 9)
    assert [one.done for one in told] == [*range(1, 10)]
    assert len(await kept(pg)) == 3
    await insert(pg, "acme", "2025-03-01T08:00Z")
    assert (await jobs.view()).backfill is None
    await jobs.backfill(date(2025, 3, 1), NINTH)
    assert len(await kept(pg)) == 4


async def test_a_backfill_that_is_interrupted_goes_on(pg: Postgres, jobs: Rollup) -> None:
    await insert(pg, "acme", "2025-03-09T08:00Z")

    def stop(progress: RollupProgress) -> None:
        if progress.done == 4:
            raise InterruptedError

    first = date(2025, 3, 1)
    with pytest.raises(InterruptedError):
        await jobs.backfill(first, NINTH, stop)
    assert (await jobs.view()).backfill == RollupProgress(date(2025, 3, 4), 4, 9)
    told: list[RollupProgress] = []
    await jobs.backfill(first, NINTH, told.append)
    assert [one.done for one in told] == [5, 6, 7, 8, 9]
    with pytest.raises(InterruptedError):
        await jobs.backfill(first, NINTH, stop)
    other: list[RollupProgress] = []
    await jobs.backfill(first, date(2025, 3, 2), other.append)  # another range is another one
    assert [one.done for one in other] == [1, 2]


async def test_a_process_that_is_killed_at_any_statement_leaves_whole_days(
    pg: Postgres, database: str, tmp_path: Path
) -> None:
    await rows(pg, TABLE)
    for day in range(1, 4):
        await insert(pg, "acme", f"2025-03-0{day}T08:00Z", day)
    wanted = [(date(2025, 3, day), "acme", 1, day) for day in range(1, 4)]
    for fatal in range(1, 200, 7):
        process = Forked(killed_statement.run, database, "rollup", fatal, log=tmp_path / "log")
        ended = process.wait(PATIENCE_S)
        if await rows(pg, "SELECT to_regclass('jobs_per_day')") != [(None,)]:
            assert [one for one in await kept(pg) if one not in wanted] == []
        if ended == 0:
            break
    assert ended == 0
    assert await kept(pg) == wanted


async def test_sealed_periods_are_never_computed_again(pg: Postgres, jobs: Rollup) -> None:
    await insert(pg, "acme", "2025-03-09T08:00Z")
    await jobs.run(NINTH)
    await jobs.seal(date(2025, 3, 10))
    await jobs.seal(date(2025, 3, 1))  # it stays where it is
    await rows(pg, "DELETE FROM jobs")
    with pytest.raises(StoreRejected, match="is sealed before 2025-03-10"):
        await jobs.run(NINTH)
    with pytest.raises(StoreRejected, match="is sealed before 2025-03-10"):
        await jobs.backfill(NINTH, date(2025, 3, 11))
    assert await kept(pg) == [(NINTH, "acme", 1, 1)]
    assert (await jobs.view()).sealed_before == date(2025, 3, 10)


async def test_a_table_that_was_dropped_is_made_anew_from_its_first_period(
    pg: Postgres, jobs: Rollup
) -> None:
    """What was sealed and back-filled is gone with it."""
    eighth = date(2025, 3, 8)
    for day in (eighth, NINTH):
        await insert(pg, "acme", f"{day}T08:00Z")

    def stop(_progress: RollupProgress) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await jobs.backfill(eighth, NINTH, stop)
    await jobs.seal(NINTH)
    await rows(pg, "DROP TABLE jobs_per_day")
    await jobs.backfill(eighth, NINTH)
    assert await kept(pg) == [(eighth, "acme", 1, 1), (NINTH, "acme", 1, 1)]
    assert (await jobs.view()).sealed_before is None


async def test_the_daily_job_computes_recent_periods_and_names_what_is_refused(
    app: Faena, pg: Postgres, jobs: Rollup, working: Working
) -> None:
    now = datetime.now(UTC)
    for days in range(-1, 4):  # midnight may pass meanwhile
        await insert(pg, "acme", (now - timedelta(days=days)).isoformat())
    pg.rollup("wrong", of="nothing", every="day", measures={"n": "count(*)"})
    task = app.queues["scheduler"].tasks["run_rollups"]
    async with working(app):
        receipt = await task.enqueue()
        told = await receipt.handle.result(timeout="60s")
    assert told == {"wrong": ["table nothing does not exist"]}
    assert len(await kept(pg)) == 3
    good, bad = await pg.rollups()
    assert (good.rows, good.problems, bad.problems) == (3, (), ("table nothing does not exist",))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"of": "nothing"}, "table nothing does not exist"),
        ({"by": "made_at"}, r"by must be a column of public.jobs, got made_at"),
        ({"by": "org"}, "column org must be a date or a timestamp, got text"),
        ({"group": ["orgs"]}, r"group must be columns of public.jobs, got orgs"),
        ({"measures": {"n": "total"}}, "measure n must be made of aggregates .* got total"),
        ({"measures": {"n": "1"}}, "measure n must be made of aggregates"),
        ({"measures": {"n": "sum(totals)"}}, r'column "totals" does not exist'),
        ({"measures": {"n": "sum(org)"}}, r"function sum\(text\) does not exist"),
        ({"measures": {"n": "count(*) OVER ()"}}, "measure n must be made of aggregates"),
        ({"measures": {"n": "count(*)); DROP TABLE jobs; --"}}, "measure n must be made of"),
        ({"by": "day_of", "tz": "Europe/Madrid"}, "tz must be UTC, because column day_of"),
        ({"name": "other"}, r"table public.other must be made by this roll-up, but it was there"),
        ({"name": "nowhere.jobs_per_day"}, 'schema "nowhere" does not exist'),
    ],
)
async def test_what_cannot_be_computed_is_refused_and_nothing_is_made(
    pg: Postgres, given: Any, told: str
) -> None:
    other = "INSERT INTO other VALUES ('2025-03-09', 1)"
    await rows(pg, TABLE, "CREATE TABLE other (day date, jobs bigint)", other)
    options = {"name": "made", "of": "jobs", "every": "day", "measures": MEASURES, **given}
    made = pg.rollup(options.pop("name"), **options)
    with pytest.raises((ConfigError, StoreRejected), match=told):
        await made.run(NINTH)
    (problem,) = (await made.view()).problems
    assert re.search(told, problem)
    tables = "SELECT to_regclass('made'), to_regclass('jobs') IS NOT NULL"
    assert await rows(pg, tables) == [(None, True)]
    assert await rows(pg, "SELECT count(*) FROM other") == [(1,)]


async def test_another_declaration_of_the_same_table_is_refused(pg: Postgres, jobs: Rollup) -> None:
    await jobs.run(NINTH)
    async with Postgres(pg.app, await pg.url(), relay=False) as other:
        changed = other.rollup("jobs_per_day", of="jobs", every="day", measures=MEASURES)
        with pytest.raises(StoreRejected, match="was made by another declaration"):
            await changed.run(NINTH)
        await rows(pg, "DROP TABLE jobs_per_day")
        await changed.run(NINTH)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"name": "a.b.c"}, "name must be a name such as jobs or shop.jobs, got 'a.b.c'"),
        ({"of": 7}, "of must be a name such as"),
        ({"name": "jobs"}, "name must be that of another table than jobs"),
        ({"every": "year"}, "every must be month, week or day, got 'year'"),
        ({"group": "org"}, "group must be a list of columns, got 'org'"),
        ({"group": ["day"]}, "must have names of their own, got two columns day"),
        ({"group": ["jobs"]}, "must have names of their own, got two columns jobs"),
        ({"measures": {}}, "measures must be aggregates by name"),
        ({"measures": {"n": ""}}, "measure n must be an aggregate such as"),
        ({"tz": "Madrid"}, "tz must be a time zone such as Europe/Madrid, got 'Madrid'"),
        ({"again": -1}, "again must be"),
    ],
)
def test_a_wrong_declaration_is_refused(pg: Postgres, given: Any, told: str) -> None:
    options = {"name": "made", "of": "jobs", "every": "day", "measures": MEASURES, **given}
    with pytest.raises(ConfigError, match=told):
        pg.rollup(options.pop("name"), **options)


async def test_a_roll_up_is_declared_once_and_days_are_dates(pg: Postgres, jobs: Rollup) -> None:
    with pytest.raises(ConfigError, match="roll-up jobs_per_day is declared twice"):
        pg.rollup("jobs_per_day", of="jobs", every="day", measures=MEASURES)
    with pytest.raises(ConfigError, match="did you mean 'jobs_per_day'"):
        pg.declared_rollup("jobs_per_dya")
    with pytest.raises(ConfigError, match="day must be a date, got '2025-03-09'"):
        await jobs.run("2025-03-09")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="first must not be after last"):
        await jobs.backfill(NINTH, date(2025, 3, 8))
    with pytest.raises(ConfigError, match="report must be a function that takes the progress"):
        await jobs.backfill(NINTH, NINTH, 5)  # pyright: ignore[reportArgumentType]


async def test_a_backfill_stops_where_a_seal_comes_meanwhile(
    pg: Postgres, jobs: Rollup, database: str
) -> None:
    for day in (9, 10):
        await insert(pg, "acme", f"2025-03-{day:02d}T08:00Z")
        await jobs.run(date(2025, 3, day))
    before = await kept(pg)

    def seal(_: RollupProgress) -> None:
        with psycopg.connect(database) as connection:
            connection.execute("UPDATE faena.rollups SET sealed_before = '2025-03-11'")
            connection.execute("DELETE FROM jobs")

    with pytest.raises(StoreRejected, match="is sealed before 2025-03-11"):
        await jobs.backfill(NINTH, date(2025, 3, 11), seal)
    assert await kept(pg) == before


async def test_the_first_period_after_a_seal_is_computed_daily(pg: Postgres, jobs: Rollup) -> None:
    current = await jobs.run()
    await jobs.seal(current.start)
    done = await jobs.run_recent()
    assert done[0] == current  # midnight may have passed: then there is a second one


async def test_of_two_backfills_at_once_the_slower_one_does_not_set_the_mark_back(
    pg: Postgres, jobs: Rollup, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast, step, first = Rollup(pg, jobs.declared), jobs._step, date(2025, 3, 1)

    def stop_at(number: int) -> Callable[[RollupProgress], None]:
        def stop(progress: RollupProgress) -> None:
            if progress.done == number:
                raise InterruptedError

        return stop

    async def overtaken(*given: Any) -> None:
        with pytest.raises(InterruptedError):
            await fast.backfill(first, NINTH, stop_at(4))
        await step(*given)

    monkeypatch.setattr(jobs, "_step", overtaken)
    with pytest.raises(InterruptedError):
        await jobs.backfill(first, NINTH, stop_at(1))
    assert (await jobs.view()).backfill == RollupProgress(date(2025, 3, 4), 4, 9)
