"""Partitions are created ahead, once, without locking anybody out, and what is wrong is told."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from faena import Faena
from faena.errors import ArgumentError, ConfigError, StoreRejected, StoreUnavailable
from faena.pg import PartitionedTable, Postgres
from faena.pg.partition import lock
from faena.pg.partition.catalog import check_key, find_table
from faena.pg.partition.create import create
from faena.pg.partition.interval import period_of
from tests._support import killed_statement
from tests._support.eventually import PATIENCE_S, eventually
from tests._support.forked import Forked

JANUARY = datetime(2025, 1, 15, tzinfo=UTC)
NAMES = ["jobs_y2025m01", "jobs_y2025m02", "jobs_y2025m03", "jobs_y2025m04"]


async def run(pg: Postgres, *statements: str) -> list[Any]:
    """The rows of the last of some statements."""
    async with pg.transaction() as connection:
        for one in statements:
            found = await connection.execute(one.encode())
        return await found.fetchall() if found.description else []


async def table(pg: Postgres, type_: str = "timestamptz") -> None:
    await run(
        pg,
        f"CREATE TABLE jobs (id text, organization_id text, created_at {type_}, status text,"
        " PRIMARY KEY (id, created_at)) PARTITION BY RANGE (created_at)",
    )


@pytest.fixture
async def jobs(pg: Postgres) -> PartitionedTable:
    await table(pg)
    return pg.partitioned("jobs", every="month", tenant="organization_id")


async def bounds(pg: Postgres) -> dict[str, str]:
    rows = await run(
        pg,
        "SET LOCAL TimeZone TO 'UTC'",
        "SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits i JOIN pg_class c"
        " ON c.oid = i.inhrelid WHERE i.inhparent = 'jobs'::regclass ORDER BY 1",
    )
    return dict(rows)


async def test_the_current_one_and_those_ahead_are_created_once(
    pg: Postgres, jobs: PartitionedTable
) -> None:
    assert await jobs.ensure(at=JANUARY) == [*NAMES, "jobs_organization_id_created_at_idx"]
    assert await jobs.ensure(at=JANUARY) == []
    assert await jobs.ensure(at=datetime(2025, 2, 1, tzinfo=UTC)) == ["jobs_y2025m05"]
    assert list(await bounds(pg)) == [*NAMES, "jobs_y2025m05"]
    indexes = await run(
        pg, "SELECT count(*) FROM pg_indexes WHERE tablename LIKE 'jobs_y%' AND schemaname='public'"
    )
    assert indexes == [(10,)]


@pytest.mark.parametrize(
    ("type_", "low", "high"),
    [
        ("timestamptz", "2024-12-30 00:00:00+00", "2025-01-06 00:00:00+00"),
        ("timestamp(3)", "2024-12-30 00:00:00", "2025-01-06 00:00:00"),
        ("date", "2024-12-30", "2025-01-06"),
    ],
)
async def test_bounds_are_in_utc_whatever_the_server_thinks(
    pg: Postgres, type_: str, low: str, high: str
) -> None:
    await table(pg, type_)
    await run(pg, "DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET TimeZone TO"
              " ''America/Buenos_Aires''', current_database()); END$$")  # fmt: skip
    async with Postgres(Faena("away"), await pg.url()) as away:
        weekly = away.partitioned("jobs", every="week", ahead=1)
        made = await weekly.ensure(at=datetime(2025, 1, 1, tzinfo=UTC))
        assert made == ["jobs_2025w01", "jobs_2025w02"]
        assert await weekly.ensure(at=datetime(2025, 1, 1, tzinfo=UTC)) == []
    assert (await bounds(pg))["jobs_2025w01"] == f"FOR VALUES FROM ('{low}') TO ('{high}')"


async def test_a_table_in_another_schema_has_its_partitions_there(pg: Postgres) -> None:
    await run(
        pg,
        'CREATE SCHEMA "Shop"',
        'CREATE TABLE "Shop"."Log" (at date) PARTITION BY RANGE (at)',
    )
    log = pg.partitioned("Shop.Log", by="at", every="day", ahead=1)
    assert await log.ensure(at=JANUARY) == ["Log_20250115", "Log_20250116"]
    assert await run(pg, """SELECT to_regclass('"Shop"."Log_20250115"') IS NOT NULL""") == [(True,)]


async def test_processes_that_ensure_at_once_make_each_partition_once(
    pg: Postgres, jobs: PartitionedTable
) -> None:
    made = await asyncio.gather(*(jobs.ensure(at=JANUARY) for _ in range(4)))
    partitions = [name for each in made for name in each if name in NAMES]
    assert sorted(partitions) == NAMES
    assert list(await bounds(pg)) == NAMES


async def test_what_a_killed_process_leaves_the_next_one_completes(
    pg: Postgres, jobs: PartitionedTable, tmp_path: Path
) -> None:
    ended, fatal = None, 3
    while ended != 0:
        process = Forked(
            killed_statement.run, await pg.url(), "ensure", fatal, log=tmp_path / "log"
        )
        ended = process.wait(PATIENCE_S)
        assert ended in {0, -9}, (tmp_path / "log").read_text()
        fatal += 4
    assert list(await bounds(pg)) == NAMES
    assert (await jobs.view(at=JANUARY)).problems == ()
    loose = "SELECT relname FROM pg_class WHERE relname LIKE 'jobs_y%' AND NOT relispartition"
    assert await run(pg, f"{loose} AND relkind IN ('r', 'p')") == []
    assert await run(pg, "SELECT count(*) FROM pg_index WHERE NOT indisvalid") == [(0,)]


# -- locks ----------------------------------------------------------------------------------------


async def test_rows_are_written_while_a_partition_is_created(
    pg: Postgres, jobs: PartitionedTable
) -> None:
    """The lock is weaker than any that a writer would wait for."""
    await jobs.ensure(at=JANUARY)
    async with pg.transaction() as creating:
        parent = await find_table(creating, jobs.declared.table)
        type_ = await check_key(creating, parent, "created_at")
        period = period_of(datetime(2025, 5, 1, tzinfo=UTC).date(), "month")
        await create(creating, parent, "created_at", type_, "month", period)
        found = await creating.execute(
            "SELECT DISTINCT mode FROM pg_locks WHERE relation = %s AND pid = pg_backend_pid()",
            [parent.oid],
        )
        modes = {row[0] for row in await found.fetchall()}
        assert modes <= {"AccessShareLock", "ShareUpdateExclusiveLock"}
        await run(
            pg,
            "SET LOCAL lock_timeout TO '1ms'",
            "INSERT INTO jobs VALUES ('1', 'acme', '2025-01-15', 'new')",
            "UPDATE jobs SET status = 'old'",
            "SELECT * FROM jobs",
        )


async def test_partitions_are_created_beside_a_writer_that_does_not_end(
    pg: Postgres, jobs: PartitionedTable
) -> None:
    await jobs.ensure(at=JANUARY)
    async with pg.transaction() as writing:
        await writing.execute("INSERT INTO jobs VALUES ('1', 'acme', '2025-01-15', 'new')")
        assert await jobs.ensure(at=datetime(2025, 2, 1, tzinfo=UTC)) == ["jobs_y2025m05"]


async def test_a_lock_that_is_not_free_is_tried_again_and_nobody_waits_behind(
    pg: Postgres, jobs: PartitionedTable
) -> None:
    await jobs.ensure(at=JANUARY)
    async with pg.transaction() as holding:
        await holding.execute("LOCK TABLE ONLY jobs IN SHARE UPDATE EXCLUSIVE MODE")
        ensuring = asyncio.create_task(jobs.ensure(at=datetime(2025, 2, 1, tzinfo=UTC)))
        waiting = "SELECT 1 FROM pg_locks WHERE relation = 'jobs'::regclass AND NOT granted"
        await eventually(lambda: run(pg, waiting))
        await run(
            pg,
            "SET LOCAL lock_timeout TO '1ms'",
            "INSERT INTO jobs VALUES ('1', 'acme', '2025-01-15', 'new')",
        )
    assert await ensuring == ["jobs_y2025m05"]


async def test_a_lock_that_is_never_free_is_an_error_that_names_its_holder(
    pg: Postgres, jobs: PartitionedTable
) -> None:
    await jobs.ensure(at=JANUARY)
    async with pg.transaction() as holding:
        await holding.execute("LOCK TABLE ONLY jobs IN SHARE UPDATE EXCLUSIVE MODE")
        with pytest.raises(StoreUnavailable, match=r"in use by pid .*LOCK TABLE"):
            await lock.patiently(pg, "ensure", "jobs", _locked, patience_s=0)


async def _locked(connection: Any) -> None:
    await connection.execute("LOCK TABLE ONLY jobs IN SHARE UPDATE EXCLUSIVE MODE")


# -- what is refused ------------------------------------------------------------------------------


async def test_a_partition_that_overlaps_is_refused_and_both_are_named(
    pg: Postgres, jobs: PartitionedTable
) -> None:
    await run(
        pg,
        "CREATE TABLE jobs_q1 PARTITION OF jobs FOR VALUES FROM ('2025-01-01+00')"
        " TO ('2025-04-01+00')",
    )
    with pytest.raises(StoreRejected, match=r"jobs_y2025m01 .* must not overlap jobs_q1 \(2025-01"):
        await jobs.ensure(at=JANUARY)


async def test_a_partition_of_the_same_bounds_counts_whatever_its_name(
    pg: Postgres, jobs: PartitionedTable
) -> None:
    await run(
        pg,
        "CREATE TABLE january PARTITION OF jobs FOR VALUES FROM ('2025-01-01+00')"
        " TO ('2025-02-01+00')",
    )
    assert (await jobs.ensure(at=JANUARY))[:3] == NAMES[1:]


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ("CREATE TABLE jobs_y2025m02 (id text)", "public.jobs_y2025m02, which is not attached"),
        (
            (
                "CREATE TABLE others (at date) PARTITION BY RANGE (at);CREATE TABLE jobs_y2025m02"
                " PARTITION OF others FOR VALUES FROM (MINVALUE) TO ('2025-01-01')"
            ),
            "jobs_y2025m02, which is a partition of others",
        ),
    ],
)
async def test_a_name_that_is_taken_is_refused(
    pg: Postgres, jobs: PartitionedTable, other: str, told: str
) -> None:
    await run(pg, *other.split(";"))
    with pytest.raises(StoreRejected, match=told):
        await jobs.ensure(at=JANUARY)


async def test_a_default_partition_is_refused_and_its_rows_are_told(
    pg: Postgres, jobs: PartitionedTable
) -> None:
    await run(
        pg,
        "CREATE TABLE jobs_rest PARTITION OF jobs DEFAULT",
        "INSERT INTO jobs VALUES ('1', 'acme', '2030-01-01', 'new')",
    )
    with pytest.raises(StoreRejected, match="must have no default partition, got jobs_rest"):
        await jobs.ensure(at=JANUARY)
    problems = (await jobs.view(at=JANUARY)).problems
    assert "there is a default partition, jobs_rest" in problems
    assert "1 rows beyond the partitions, in jobs_rest" in problems


@pytest.mark.parametrize(
    ("definition", "told"),
    [
        ("CREATE TABLE jobs (created_at date)", "is a plain table: convert it with `faena pg"),
        ("CREATE TABLE jobs (created_at int) PARTITION BY RANGE (created_at)", "got integer"),
        ("CREATE TABLE jobs (created_at date) PARTITION BY LIST (created_at)", "list of"),
        ("CREATE TABLE jobs (created_at date) PARTITION BY HASH (created_at)", "hash of"),
        ("CREATE TABLE jobs (created_at date, b int) PARTITION BY RANGE (b)", "range of b"),
        ("CREATE TABLE jobs (created_at date, b int) PARTITION BY RANGE (created_at, b)", "more"),
        ("CREATE TABLE jobs (created_at date) PARTITION BY RANGE ((created_at + 1))", "expression"),
        ("SELECT 1", "table jobs does not exist"),
    ],
)
async def test_a_table_of_another_kind_is_refused(pg: Postgres, definition: str, told: str) -> None:
    await run(pg, definition)
    jobs = pg.partitioned("jobs", every="month")
    with pytest.raises((StoreRejected, ConfigError), match=told):
        await jobs.ensure()
    (view,) = await pg.partitions()
    assert told in view.problems[0]


def test_a_table_is_declared_once(app: Faena) -> None:
    pg = Postgres(app, "postgresql://nowhere/x")
    pg.partitioned("jobs", every="month")
    with pytest.raises(ConfigError, match="table jobs is declared twice"):
        pg.partitioned("jobs", every="week")
    with pytest.raises(ConfigError, match="did you mean 'jobs'"):
        pg.partitioned_table("job")
    with pytest.raises(
        ConfigError, match=r"every must be given .* not declared .*, got 'job'; did you"
    ):
        pg.convert("job")


@pytest.mark.parametrize("since", ["2023-01-01", 5, datetime(2023, 1, 1, tzinfo=UTC)])
async def test_the_first_day_must_be_a_date(jobs: PartitionedTable, since: Any) -> None:
    with pytest.raises(ArgumentError, match="since must be a date, got"):
        await jobs.ensure(since=since)


# -- what is seen ---------------------------------------------------------------------------------


async def test_a_gap_and_a_short_runway_are_told(pg: Postgres, jobs: PartitionedTable) -> None:
    await jobs.ensure(at=JANUARY)
    view = await jobs.view(at=JANUARY)
    assert [one.name for one in view.partitions] == NAMES
    assert (view.problems, view.runway and view.runway.isoformat()) == (
        (),
        "2025-05-01T00:00:00+00:00",
    )
    assert "short runway" in (await jobs.view(at=datetime(2025, 3, 1, tzinfo=UTC))).problems[0]
    late = await jobs.view(at=datetime(2025, 6, 1, tzinfo=UTC))
    assert late.problems[0] == "no partition for now: rows of 2025-06-01 to 2025-07-01 are refused"
    assert late.runway is None
    await run(pg, "ALTER TABLE jobs DETACH PARTITION jobs_y2025m03")
    view = await jobs.view(at=JANUARY)
    assert "gap: no partition from 2025-03-01 to 2025-04-01" in view.problems
    assert [one.name for one in view.partitions if not one.is_attached] == ["jobs_y2025m03"]


async def test_one_table_that_is_refused_stops_no_other(
    pg: Postgres, jobs: PartitionedTable
) -> None:
    pg.partitioned("nothing", every="day")
    done = await pg.ensure_partitions(at=JANUARY)
    assert done.made["jobs"][:4] == NAMES
    assert done.problems == {"nothing": ["table nothing does not exist"]}


async def test_a_weekly_job_creates_partitions_and_warns(
    app: Faena, h: Any, pg: Postgres, jobs: PartitionedTable, caplog: pytest.LogCaptureFixture
) -> None:
    pg.partitioned("nothing", every="day")
    (view,) = await app.schedules.list()
    assert (view.name, view.queue) == ("ensure-partitions", "scheduler")
    assert view.when == "0 2 * * SUN UTC"
    await h.drain(through="8d")
    assert (await jobs.view()).problems == ()
    assert "partitions of nothing: table nothing does not exist" in caplog.text


async def test_a_query_of_one_tenants_recent_day_reads_one_partition(
    pg: Postgres, jobs: PartitionedTable
) -> None:
    await jobs.ensure(at=JANUARY)
    plan = await run(
        pg,
        "EXPLAIN SELECT * FROM jobs WHERE organization_id = 'acme'"
        " AND created_at >= '2025-02-10' AND created_at < '2025-02-11'",
    )
    text = "\n".join(row[0] for row in plan)
    assert "jobs_y2025m02" in text
    assert not any(name in text for name in NAMES if name != "jobs_y2025m02")


async def test_a_row_without_a_partition_is_refused_by_the_server(
    pg: Postgres, jobs: PartitionedTable
) -> None:
    await jobs.ensure(at=JANUARY)
    with pytest.raises(psycopg.errors.CheckViolation, match="no partition of relation"):
        await run(pg, "INSERT INTO jobs VALUES ('1', 'acme', '2031-01-15', 'new')")


async def test_foreign_keys_identities_and_triggers_of_the_table_reach_new_partitions(
    pg: Postgres,
) -> None:
    await run(
        pg,
        "CREATE TABLE people (id int PRIMARY KEY)",
        "CREATE TABLE jobs (id bigint GENERATED ALWAYS AS IDENTITY, person int REFERENCES people,"
        " created_at date DEFAULT '2025-01-15', PRIMARY KEY (id, created_at))"
        " PARTITION BY RANGE (created_at)",
    )
    jobs = pg.partitioned("jobs", every="month", ahead=1)
    await jobs.ensure(at=JANUARY)
    await run(pg, "INSERT INTO people VALUES (1)", "INSERT INTO jobs (person) VALUES (1), (1)")
    assert await run(pg, "SELECT id, tableoid::regclass::text FROM jobs ORDER BY id") == [
        (1, "jobs_y2025m01"),
        (2, "jobs_y2025m01"),
    ]
    with pytest.raises(psycopg.errors.ForeignKeyViolation, match="violates foreign key"):
        await run(pg, "INSERT INTO jobs (person) VALUES (7)")


# -- out and back in ------------------------------------------------------------------------------


async def test_a_partition_is_detached_and_attached_with_its_rows(
    pg: Postgres, jobs: PartitionedTable
) -> None:
    await jobs.ensure(at=JANUARY)
    await run(pg, "INSERT INTO jobs VALUES ('1', 'acme', '2025-02-15', 'new')")
    await jobs.detach("jobs_y2025m02")
    await jobs.detach("jobs_y2025m02")
    assert await run(pg, "SELECT count(*) FROM jobs") == [(0,)]
    assert await run(pg, "SELECT count(*) FROM jobs_y2025m02") == [(1,)]
    assert str(await jobs.attach("jobs_y2025m02")) == "2025-02-01 to 2025-03-01"
    await jobs.attach("jobs_y2025m02")
    assert await run(pg, "SELECT count(*) FROM jobs") == [(1,)]
    checks = "SELECT conname FROM pg_constraint WHERE conname = 'faena_bounds'"
    assert await run(pg, checks) == []


async def test_a_detachment_that_was_interrupted_is_ended(
    pg: Postgres, jobs: PartitionedTable
) -> None:
    await jobs.ensure(at=JANUARY)
    url = await pg.url()
    async with pg.transaction() as reading:
        await reading.execute("SELECT * FROM jobs")  # keeps the detachment waiting
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as other:
            await other.execute("SET lock_timeout TO '10ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                await other.execute("ALTER TABLE jobs DETACH PARTITION jobs_y2025m02 CONCURRENTLY")
        problems = (await jobs.view(at=JANUARY)).problems
        assert any("jobs_y2025m02 is being detached" in one for one in problems)
    await jobs.detach("jobs_y2025m03")
    assert list(await bounds(pg)) == ["jobs_y2025m01", "jobs_y2025m04"]
    assert await jobs.finish_detach() == []


async def test_rows_of_another_time_are_not_attached(pg: Postgres, jobs: PartitionedTable) -> None:
    await jobs.ensure(at=JANUARY)
    await jobs.detach("jobs_y2025m04")
    await run(
        pg,
        "ALTER TABLE jobs_y2025m04 RENAME TO jobs_y2025m05",
        "INSERT INTO jobs_y2025m05 VALUES ('1', 'acme', '2025-04-15', 'new')",
    )
    with pytest.raises(StoreRejected, match="must have created_at in 2025-05-01 to 2025-06-01"):
        await jobs.attach("jobs_y2025m05")
    period = await jobs.attach("jobs_y2025m05", day=date(2025, 4, 3))
    assert period.start == date(2025, 4, 1)


@pytest.mark.parametrize(
    ("partition", "told"),
    [("jobs_y2031m01", "has no partition jobs_y2031m01"), ("other_1", "which is one of other")],
)
async def test_only_partitions_of_the_table_are_detached(
    pg: Postgres, jobs: PartitionedTable, partition: str, told: str
) -> None:
    await run(
        pg,
        "CREATE TABLE other (at date) PARTITION BY RANGE (at)",
        "CREATE TABLE other_1 PARTITION OF other DEFAULT",
    )
    with pytest.raises(ConfigError, match=told):
        await jobs.detach(partition)


async def test_an_overlapping_table_or_one_without_a_period_is_not_attached(
    pg: Postgres, jobs: PartitionedTable
) -> None:
    await jobs.ensure(at=JANUARY)
    await run(pg, "CREATE TABLE spare (LIKE jobs)")
    with pytest.raises(ConfigError, match="must end with its month, or a day of it must be given"):
        await jobs.attach("spare")
    with pytest.raises(StoreRejected, match=r"spare .* must not overlap jobs_y2025m01"):
        await jobs.attach("spare", day=JANUARY.date())


async def test_partitions_belong_to_the_owner_of_their_table_whoever_makes_them(
    pg: Postgres, database: str, jobs: PartitionedTable
) -> None:
    ((name,),) = await run(pg, "SELECT current_database()")
    owner, member = f"owner_{name}", f"member_{name}"
    await run(
        pg,
        f"CREATE ROLE {owner}",
        f"CREATE ROLE {member} LOGIN IN ROLE {owner}",
        f"GRANT ALL ON SCHEMA public TO {owner}",
        f"ALTER TABLE jobs OWNER TO {owner}",
    )
    try:
        url = database.replace("postgres@", f"{member}@")
        async with Postgres(Faena("member"), url, relay=False) as other:
            await other.partitioned("jobs", every="month").ensure(at=JANUARY)
        owners = (
            "SELECT relname, relowner::regrole::text FROM pg_class WHERE relname LIKE 'jobs_y%'"
        )
        found = await run(pg, f"{owners} AND relkind = 'r' ORDER BY 1")
        assert found == [(one, owner) for one in NAMES]
    finally:
        await run(pg, f"DROP OWNED BY {owner}, {member} CASCADE", f"DROP ROLE {member}, {owner}")


async def test_a_first_day_centuries_ago_is_refused(pg: Postgres, jobs: PartitionedTable) -> None:
    with pytest.raises(ArgumentError, match="since must need at most 3000 partitions, got 0001"):
        await jobs.ensure(since=date(1, 1, 1))
    assert not (await jobs.view()).partitions
