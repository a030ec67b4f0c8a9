"""Reads go to a replica that is fresh enough, and to the primary otherwise, without an error."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from time import monotonic
from typing import Any

import pytest
from psycopg import errors as pg_errors

from faena import Event, Faena
from faena.errors import ConfigError, StoreUnavailable
from faena.pg import Postgres, replica
from faena.pg.replica import Line, Replayed, Sample, before_header, behind, lag
from tests._support.eventually import PATIENCE_S, eventually
from tests._support.postgres import KILLABLE, QUICK, Cluster, standby
from tests._support.valkey import Server

QUIET = ("autovacuum = off", "checkpoint_timeout = 1h")


@pytest.fixture(scope="module")
def primary() -> Iterator[Cluster]:
    with Cluster(*QUICK, *QUIET) as cluster:
        with cluster.connected() as connection:
            connection.execute("CREATE TABLE kept (number int)")
            connection.execute("CREATE ROLE reporter LOGIN")
            connection.execute("GRANT SELECT ON kept TO reporter")
        yield cluster


@pytest.fixture(scope="module")
def _follower(primary: Cluster) -> Iterator[Cluster]:
    with standby(primary) as cluster:
        yield cluster


@pytest.fixture
def follower(primary: Cluster, _follower: Cluster) -> Iterator[Cluster]:
    yield _follower
    with _follower.connected() as connection:
        connection.execute("SELECT pg_wal_replay_resume()")
    with primary.connected() as connection:
        connection.execute("TRUNCATE kept")


@pytest.fixture
async def app(server: Server, namespace: str) -> AsyncIterator[Faena]:
    """With a broker where events may stay."""
    app = Faena("shop", server.url, namespace=namespace)
    app.queue("work")
    yield app
    await app.close()


@pytest.fixture
async def pg(app: Faena, primary: Cluster, follower: Cluster) -> AsyncIterator[Postgres]:
    async with Postgres(app, primary.tcp_url(), replica_url=follower.tcp_url(), relay=False) as pg:
        yield pg


async def count(pg: Postgres, max_lag: str = "5s") -> tuple[int, bool]:
    """How many rows are there, and whether the replica said so."""
    async with pg.reading(max_lag=max_lag) as connection:
        found = await connection.execute("SELECT count(*) FROM kept")
        row = await found.fetchone()
        assert row is not None
        return row[0], connection.is_replica


async def insert(pg: Postgres) -> None:
    async with pg.transaction() as connection:
        await connection.execute("INSERT INTO kept VALUES (1)")


async def is_on(pg: Postgres, wanted: bool, max_lag: str = "5s") -> bool:
    return (await count(pg, max_lag))[1] is wanted


async def test_a_read_sees_on_the_replica_what_was_committed_before(pg: Postgres) -> None:
    await insert(pg)
    await eventually(lambda: is_on(pg, True, "0s"))
    assert await count(pg, "1h") == (1, True)
    assert (await pg.replica.view()).is_usable


async def test_a_replica_of_an_idle_primary_is_not_late(pg: Postgres, primary: Cluster) -> None:
    """Also where the next record of the WAL begins behind the header of a page."""
    with primary.connected() as connection:
        connection.execute("SELECT pg_switch_wal()")
    await eventually(lambda: _are_all_on_replica(pg))


async def _are_all_on_replica(pg: Postgres) -> bool:
    return all([await is_on(pg, True, "0s") for _ in range(5)])


@pytest.mark.parametrize("max_lag", ["0s", "1h"])
async def test_a_write_is_refused_on_either(
    app: Faena, primary: Cluster, follower: Cluster, max_lag: str
) -> None:
    url = follower.tcp_url() if max_lag == "1h" else None
    async with Postgres(app, primary.tcp_url(), replica_url=url, relay=False) as pg:
        with pytest.raises(pg_errors.ReadOnlySqlTransaction):
            async with pg.reading(max_lag=max_lag) as connection:
                await connection.execute("INSERT INTO kept VALUES (1)")
        with pytest.raises(pg_errors.ActiveSqlTransaction, match="read-write mode must be set"):
            async with pg.reading(max_lag=max_lag) as connection:
                await connection.execute("SET TRANSACTION READ WRITE")
        await insert(pg)  # what the next transaction of that connection may do
        assert (await count(pg, "0s"))[0] == 1


async def test_a_replica_that_is_late_is_not_read_and_a_patient_reader_reads_it(
    pg: Postgres, follower: Cluster
) -> None:
    await eventually(lambda: is_on(pg, True, "0s"))
    with follower.connected() as connection:
        connection.execute("SELECT pg_wal_replay_pause()")
        await insert(pg)
        assert await count(pg, "0s") == (1, False)
        await eventually(lambda: is_on(pg, True, "1h"))
        assert await count(pg, "1h") == (0, True)
        await eventually(lambda: is_on(pg, False, "1s"))
        assert (await pg.replica.view()).lag_s >= 1  # type: ignore[operator]
        connection.execute("SELECT pg_wal_replay_resume()")
    await eventually(lambda: is_on(pg, True, "0s"))
    assert await count(pg, "1h") == (1, True)


async def test_a_fall_back_and_a_return_are_told_once(
    app: Faena, pg: Postgres, follower: Cluster, caplog: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(replica, "STEADY_S", 0.0)
    monkeypatch.setattr(replica, "PAUSE_S", 0.0)
    monkeypatch.setattr(replica, "CHECK_S", PATIENCE_S)
    caplog.set_level(logging.INFO, logger="faena.pg")
    # Of a reader who wants everything nobody is told; until then the replica may have to replay
    # what another test has written, and be late by that.
    await eventually(lambda: is_on(pg, True, "0s"))
    with follower.connected() as connection:
        connection.execute("SELECT pg_wal_replay_pause()")
        await insert(pg)
        await eventually(lambda: is_on(pg, False, "1s"))
        for _ in range(3):
            assert await is_on(pg, False, "1s")
        connection.execute("SELECT pg_wal_replay_resume()")
    await eventually(lambda: is_on(pg, True, "1s"))
    told = [one async for one in _told(app, 2)]
    assert [(one.name, one.value) for one in told] == [
        ("replica_late", "shop"),
        ("replica_on_time", "shop"),
    ]
    assert "behind" in str(told[0].reason)
    assert "behind" in caplog.messages[0]
    assert caplog.messages[1:] == ["reads go to the replica again"]


async def _told(app: Faena, number: int) -> AsyncIterator[Event]:
    async with aclosing(app.events(since="start")) as events:
        async for event in events:
            yield event
            number -= 1
            if number == 0:
                return


async def test_a_replica_that_dies_in_the_middle_of_a_read_is_told_at_once(
    pg: Postgres, follower: Cluster, caplog: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(replica, "CHECK_S", PATIENCE_S)
    await eventually(lambda: is_on(pg, True, "0s"))

    async def read() -> None:
        async with pg.reading(max_lag="1h") as connection:
            assert connection.is_replica
            follower.kill()
            await connection.execute("SELECT count(*) FROM kept")

    with pytest.raises(StoreUnavailable):
        await read()
    follower.start()
    (told,) = [one.getMessage() for one in caplog.records if one.name == "faena.pg"]
    assert told.startswith("reads go to the primary and not to the replica: ")


async def test_a_slow_answer_of_the_primary_does_not_make_the_replica_look_fresher(
    pg: Postgres, primary: Cluster, monkeypatch: Any
) -> None:
    """What was committed while the answer was on its way is not in the position it tells."""
    monkeypatch.setattr(replica, "CHECK_S", PATIENCE_S)
    with primary.frozen():
        looking = asyncio.create_task(pg.replica.view())
        await asyncio.sleep(0)  # it has asked, and gets its answer after the block
        answered_at = monotonic()
    await looking
    (sample,) = pg.replica._samples
    assert sample.at < answered_at


async def test_no_read_fails_while_a_replica_dies_and_comes_back(
    pg: Postgres, follower: Cluster
) -> None:
    await insert(pg)
    await eventually(lambda: is_on(pg, True, "0s"))
    for end in (follower.kill, follower.stop):
        end()
        began = monotonic()
        for _ in range(60):
            assert await count(pg) == (1, False)
        assert monotonic() - began < 30, "each read has waited for the replica"
        assert not (await pg.replica.view()).is_usable
        follower.start()
        await eventually(lambda: is_on(pg, True))


async def test_a_frozen_replica_costs_one_short_check(pg: Postgres, follower: Cluster) -> None:
    await insert(pg)
    await eventually(lambda: is_on(pg, True, "0s"))
    with follower.frozen():
        began = monotonic()
        for _ in range(60):
            assert await count(pg) == (1, False)
        assert monotonic() - began < 30, "each read has waited for the replica"
    await eventually(lambda: is_on(pg, True))


async def test_a_primary_is_no_replica(app: Faena, primary: Cluster) -> None:
    url = primary.tcp_url()
    async with Postgres(app, url, replica_url=url, relay=False) as pg:
        assert (await count(pg))[1] is False
        assert (await pg.replica.view()).reason == "it is no replica"


async def test_a_replica_of_another_server_is_not_read(
    app: Faena, database: str, follower: Cluster
) -> None:
    async with Postgres(app, database, replica_url=follower.tcp_url(), relay=False) as pg:
        async with pg.reading(max_lag="1h") as connection:
            assert not connection.is_replica
        assert (await pg.replica.view()).reason == "it is a replica of another server"


async def test_a_replica_that_was_ahead_of_the_one_that_was_promoted_is_not_read(
    app: Faena,
) -> None:
    """Its position is beyond that of its new primary, and it lacks what is committed there."""
    with Cluster(*KILLABLE, *QUIET) as former, standby(former) as heir, standby(former) as left:
        with former.connected() as connection:
            connection.execute("CREATE TABLE kept (number int)")
        await eventually(lambda: _has_replayed(heir, former))
        heir.stop()
        with former.connected() as connection:
            connection.execute(
                "CREATE TABLE lost AS SELECT repeat('x', 500) FROM generate_series(1, 9000)"
            )
        await eventually(lambda: _has_replayed(left, former))
        former.stop()
        heir.start()
        with heir.connected() as connection:
            connection.execute("SELECT pg_promote()")
            connection.execute("INSERT INTO kept VALUES (1)")
        urls = heir.tcp_url(), left.tcp_url()
        async with Postgres(app, urls[0], replica_url=urls[1], relay=False) as pg:
            assert await count(pg, "0s") == (1, False)
            assert await count(pg, "1h") == (1, False)
            assert (await pg.replica.view()).reason == "it has not followed a promotion"


def _has_replayed(follower: Cluster, primary: Cluster) -> bool:
    with primary.connected() as connection, follower.connected() as other:
        (position,) = connection.execute("SELECT pg_current_wal_lsn()").fetchone() or ()
        found = other.execute("SELECT pg_last_wal_replay_lsn() >= %s", [position]).fetchone()
        return found == (True,)


async def test_a_replica_that_follows_a_promotion_is_read_again(app: Faena) -> None:
    with Cluster(*KILLABLE, *QUIET) as former, standby(former) as heir, standby(former) as left:
        with former.connected() as connection:
            connection.execute("CREATE TABLE kept (number int)")
        for one in (heir, left):
            await eventually(lambda follower=one: _has_replayed(follower, former))
        former.stop()
        with heir.connected() as connection:
            connection.execute("SELECT pg_promote()")
            connection.execute("INSERT INTO kept VALUES (1)")
        with left.connected() as connection:
            follow = f"host={heir.directory} port={heir.port} user=postgres"
            connection.execute(f"ALTER SYSTEM SET primary_conninfo = '{follow}'".encode())
            connection.execute("SELECT pg_reload_conf()")
        urls = heir.tcp_url(), left.tcp_url()
        async with Postgres(app, urls[0], replica_url=urls[1], relay=False) as pg:
            await eventually(lambda: is_on(pg, True, "0s"))
            assert await count(pg, "0s") == (1, True)


async def test_a_role_without_privileges_reads_too(
    app: Faena, primary: Cluster, follower: Cluster
) -> None:
    urls = [one.tcp_url().replace("postgres@", "reporter@") for one in (primary, follower)]
    async with Postgres(app, urls[0], replica_url=urls[1], relay=False) as pg:
        await eventually(lambda: is_on(pg, True, "0s"))


async def test_an_error_inside_the_block_is_that_of_the_block(pg: Postgres) -> None:
    with pytest.raises(ZeroDivisionError):
        async with pg.reading():
            raise ZeroDivisionError
    with pytest.raises(pg_errors.UndefinedTable):
        async with pg.reading() as connection:
            await connection.execute("SELECT * FROM nothing")


async def test_without_a_primary_the_replica_serves_patient_readers(
    app: Faena, pg: Postgres, follower: Cluster
) -> None:
    await insert(pg)  # a replica that has replayed nothing proves nothing
    await eventually(lambda: is_on(pg, True, "0s"))
    absent = "postgresql://postgres@127.0.0.1:1/postgres"
    async with Postgres(
        app, absent, replica_url=follower.tcp_url(), patience="500ms", relay=False
    ) as alone:
        assert (await count(alone, "10h"))[1] is True
        with pytest.raises(StoreUnavailable, match="PostgreSQL cannot be reached"):
            await count(alone, "0s")


@pytest.mark.parametrize("url", ["redis://x", "", 7])
def test_a_url_of_something_else_is_refused(app: Faena, url: Any) -> None:
    with pytest.raises(ConfigError, match="replica_url must be a URL such as postgresql://"):
        Postgres(app, replica_url=url)


@pytest.mark.parametrize("bound", [-1, "soon", None])
def test_a_bound_that_is_no_duration_is_refused(pg: Postgres, bound: Any) -> None:
    with pytest.raises(ConfigError, match="max_lag must be"):
        pg.reading(max_lag=bound)


def test_the_lag_is_what_positions_and_times_prove() -> None:
    line, other = Line(1, 1), Line(2, 1)
    samples = deque([Sample(10.0, 100, 1000.0, line), Sample(12.0, 200, 1002.0, line)])
    assert lag(samples, Replayed(200, None, 0.0, line), 13.0) == 1.0
    assert lag(samples, Replayed(199, None, 0.0, line), 13.0) == 3.0
    assert lag(samples, Replayed(99, None, 0.0, line), 13.0) == float("inf")
    assert lag(samples, Replayed(199, 1001.5, 0.0, line), 13.0) == 1.5  # by the primary's clock
    assert lag(samples, Replayed(200, 900.0, 0.0, line), 11.0) == 0.0
    assert lag(samples, Replayed(200, 900.0, 0.0, other), 13.0) is None
    assert lag(deque(), Replayed(200, 900.0, 905.0, other), 13.0) == 5.0


def test_a_primary_whose_clock_was_put_back_does_not_make_a_replica_look_fresh() -> None:
    """What was replayed was committed before a position that the replica lacks."""
    samples = deque([Sample(10.0, 100, 1000.0, Line(1, 1))])
    assert lag(samples, Replayed(99, 999.0, 0.0, Line(1, 1)), 10.0) == 1.0
    assert lag(samples, Replayed(99, 4600.0, 0.0, Line(1, 1)), 10.0) == float("inf")


def test_positions_of_another_timeline_prove_nothing() -> None:
    samples = deque([Sample(10.0, 900, 1000.0, Line(1, 1)), Sample(12.0, 200, 1002.0, Line(1, 2))])
    assert lag(samples, Replayed(900, 1002.0, 0.0, Line(1, 1)), 12.0) is None
    assert lag(samples, Replayed(950, None, 0.0, Line(1, 2)), 13.0) == 1.0
    assert lag(samples, Replayed(199, None, 0.0, Line(1, 2)), 13.0) == float("inf")


def test_a_position_behind_the_header_of_a_page_is_that_before_it() -> None:
    block, segment = 8192, 16 * 2**20
    assert before_header(3 * segment + 40, block, segment) == 3 * segment
    assert before_header(3 * segment + block + 24, block, segment) == 3 * segment + block
    assert before_header(3 * segment + block + 40, block, segment) == 3 * segment + block + 40


def test_how_far_a_replica_is_behind_is_told_in_words() -> None:
    assert behind(7.04) == "it is 7.0 s behind"
    assert behind(lag(deque(), Replayed(None, None, 0.0, Line(1, 1)), 5.0) or 0.0) == (
        "nobody knows how far it is behind"
    )


async def test_a_view_of_a_replica_tells_no_endless_lag(
    pg: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look(*_: object) -> tuple[None, float]:
        return None, float("inf")

    monkeypatch.setattr(pg.replica, "_look", look)
    view = await pg.replica.view()
    assert (view.is_usable, view.lag_s) == (True, None)
