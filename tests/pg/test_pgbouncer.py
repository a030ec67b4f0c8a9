"""Behind PgBouncer in transaction mode: the same as without, and nothing is left in a session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from faena import Faena, Job
from faena.errors import StoreRejected
from faena.pg import Connection, Postgres
from faena.pg.migration import migrate, migrations, pending
from faena.pg.sizing import connections
from tests._support.eventually import eventually
from tests._support.pgbouncer import PgBouncer, binary
from tests._support.postgres import Cluster
from tests._support.working import Working

pytestmark = pytest.mark.skipif(binary() is None, reason="Debian's pgbouncer is not installed")

JANUARY = datetime(2025, 1, 15, tzinfo=UTC)


@pytest.fixture(scope="module")
def bouncer(cluster: Cluster) -> Iterator[PgBouncer]:
    with PgBouncer(cluster) as bouncer:
        yield bouncer


def through(bouncer: PgBouncer, url: str) -> str:
    """The same database, through PgBouncer."""
    return bouncer.url(psycopg.conninfo.conninfo_to_dict(url)["dbname"])  # type: ignore[arg-type]


@pytest.fixture
async def pooled(app: Faena, bouncer: PgBouncer, database: str) -> AsyncIterator[Postgres]:
    """Transactions go through PgBouncer, sessions past it."""
    async with Postgres(app, through(bouncer, database), direct_url=database) as pg:
        yield pg


async def rows(pg: Postgres, *statements: str) -> list[Any]:
    async with pg.transaction() as connection:
        for one in statements:
            found = await connection.execute(one.encode())
        return await found.fetchall() if found.description else []


async def assert_clean(pg: Postgres) -> None:
    """No server connection has a setting, a lock, a statement or a channel of somebody else."""
    look = (
        "SELECT pg_backend_pid(), current_setting('lock_timeout'), current_setting('TimeZone') ="
        " (SELECT reset_val FROM pg_settings WHERE name = 'TimeZone'),"
        " (SELECT count(*) FROM pg_prepared_statements),"
        " (SELECT count(*) FROM pg_listening_channels()),"
        " (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory')"
    )
    barrier = asyncio.Barrier(4)

    async def one() -> Any:
        async with pg.transaction() as connection:
            row = await (await connection.execute(look.encode())).fetchone()
            await barrier.wait()  # each on a server connection of its own
            return row

    found = await asyncio.gather(*(one() for _ in range(4)))
    assert len({pid for pid, *_ in found}) == 4
    assert {tuple(rest) for _, *rest in found} == {("0", True, 0, 0, 0)}


async def test_migrations_are_applied_through_it(
    app: Faena, bouncer: PgBouncer, bare_database: str
) -> None:
    async with Postgres(app, through(bouncer, bare_database)) as pg:
        done = await asyncio.gather(*(migrate(pg) for _ in range(3)))
        assert sorted(one for each in done for one in each) == sorted(migrations())
        assert await pending(pg) == []
        await assert_clean(pg)


async def test_the_outbox_is_relayed_and_settled_and_effects_happen_once(
    app: Faena, pooled: Postgres, working: Working
) -> None:
    await rows(pooled, "CREATE TABLE sold (number int)")

    @app.queue("sales", concurrency=10).task
    @pooled.effect
    async def sell(transaction: Connection, number: int, job: Job) -> int:
        await transaction.execute("INSERT INTO sold VALUES (%s)", [number])
        return number

    await pooled.outbox.publish()
    async with working(app):
        async with pooled.transaction() as connection:
            for number in range(40):
                job = await pooled.outbox.enqueue(connection, sell, number, id=f"job-{number}")
        await eventually(lambda: _is_settled(pooled))
        assert await rows(pooled, "SELECT count(*), count(DISTINCT number) FROM sold") == [(40, 40)]
        handle = sell.handle(job)
        await handle.rerun()
        assert await handle.result(timeout="60s") == 39
    assert await rows(pooled, "SELECT count(*) FROM sold") == [(40,)]
    await assert_clean(pooled)


async def _is_settled(pg: Postgres) -> bool:
    sold = await rows(pg, "SELECT count(*) FROM sold")
    return sold == [(40,)] and await rows(pg, "SELECT 1 FROM faena.outbox") == []


async def test_without_a_direct_url_the_relay_looks_every_second(
    app: Faena, bouncer: PgBouncer, database: str, working: Working
) -> None:
    ran: list[int] = []

    @app.queue("sales").task
    async def sell(number: int) -> None:
        ran.append(number)

    async with Postgres(app, through(bouncer, database)) as pg:
        await pg.outbox.publish()
        async with working(app):
            for number in range(3):
                async with pg.transaction() as connection:
                    await pg.outbox.enqueue(connection, sell, number)
                await eventually(lambda known=number: known in ran)


async def test_partitions_are_created_indexed_detached_and_attached(pooled: Postgres) -> None:
    await rows(
        pooled,
        "CREATE TABLE jobs (id int, org text, created_at timestamptz)"
        " PARTITION BY RANGE (created_at)",
    )
    jobs = pooled.partitioned("jobs", every="month", tenant="org")
    made = await jobs.ensure(at=JANUARY)
    assert made[:2] == ["jobs_y2025m01", "jobs_y2025m02"]
    await rows(pooled, "INSERT INTO jobs VALUES (1, 'acme', '2025-01-20')")
    await jobs.detach("jobs_y2025m01")
    assert await rows(pooled, "SELECT count(*) FROM jobs") == [(0,)]
    await jobs.attach("jobs_y2025m01")
    assert await rows(pooled, "SELECT count(*) FROM jobs") == [(1,)]
    await assert_clean(pooled)


async def test_what_needs_a_session_is_refused_without_one(
    app: Faena, bouncer: PgBouncer, database: str
) -> None:
    async with Postgres(app, through(bouncer, database)) as pg:
        await rows(
            pg,
            "CREATE TABLE jobs (id int, created_at timestamptz) PARTITION BY RANGE (created_at)",
        )
        jobs = pg.partitioned("jobs", every="month", indexes=["id"])
        with pytest.raises(StoreRejected, match="set direct_url or FAENA_PG_DIRECT_URL"):
            await jobs.ensure(at=JANUARY)
        with pytest.raises(StoreRejected, match="detach must have a session of its own"):
            await jobs.detach("jobs_y2025m01")
        assert await rows(pg, "SELECT count(*) FROM pg_inherits WHERE inhdetachpending") == [(0,)]
        await assert_clean(pg)


async def test_a_table_is_converted_while_it_is_used(pooled: Postgres) -> None:
    await rows(
        pooled,
        "CREATE TABLE visits (id int PRIMARY KEY, org text, at timestamptz NOT NULL)",
        "INSERT INTO visits SELECT n, 'acme', now() - n * interval '1 hour'"
        " FROM generate_series(1, 500) n",
    )
    conversion = pooled.convert("visits", by="at", every="day", ahead=3, tenant="org")
    writing, number = True, 500

    async def write() -> None:
        nonlocal number
        while writing:
            number += 1
            await rows(pooled, f"INSERT INTO visits VALUES ({number}, 'acme', now())")
            await rows(pooled, f"DELETE FROM visits WHERE id = {number - 500}")

    writer = asyncio.create_task(write())
    await conversion.run()
    await conversion.swap()
    writing = False
    await writer
    known = await rows(pooled, "SELECT count(*), min(id), max(id) FROM visits")
    assert known == [(500, number - 499, number)]
    await conversion.revert()
    assert await rows(pooled, "SELECT count(*), min(id), max(id) FROM visits") == known
    await assert_clean(pooled)


async def test_the_status_knows_that_a_pooler_is_in_between(pooled: Postgres, pg: Postgres) -> None:
    view = await connections(pooled, processes=2, cores=2)
    assert (view.is_pooled, view.has_direct_url) == (True, True)
    assert "default_pool_size 5" in view.advice[0]
    assert not (await connections(pg)).is_pooled
