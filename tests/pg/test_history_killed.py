"""Whatever dies or freezes on the way, each end of a job has one row: counted by rows."""

from __future__ import annotations

import random
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from faena import Event, Faena, Receipt
from faena.engine.calls.history import HistoryCalls
from faena.engine.calls.resilience import SHARD
from faena.pg import History, Postgres
from faena.pg.history.lag import Lag
from faena.pg.history.reader import HistoryReader
from faena.task import Task
from tests._support.eventually import eventually
from tests._support.forked import Forked
from tests._support.history_process import NOTHING, HistoryPlan, history_app, read_until, work
from tests._support.postgres import KILLABLE, Cluster
from tests._support.valkey import Server
from tests._support.working import Working, obliterate

Parts = tuple[Faena, Postgres, Task[int, int]]


@pytest.fixture
def plan(server: Server, namespace: str, database: str) -> HistoryPlan:
    return HistoryPlan(server.url, namespace, database)


@pytest.fixture
async def parts(plan: HistoryPlan) -> AsyncIterator[Parts]:
    app, pg, double = history_app(plan)
    async with pg:
        yield app, pg, double
    await obliterate(app)


async def ids(pg: Postgres) -> list[str]:
    async with pg.transaction() as connection:
        found = await connection.execute("SELECT id FROM faena.history ORDER BY finished_at, id")
        return [job for (job,) in await found.fetchall()]


async def has(pg: Postgres, number: int) -> bool:
    return len(await ids(pg)) >= number


async def end(double: Task[int, int], number: int) -> list[str]:
    """Jobs that are cancelled before they begin."""
    receipts = await double.enqueue_many(list(range(number)))
    for one in receipts:
        await one.handle.cancel()
    return [one.id for one in receipts]


def one_each(stored: Sequence[str], expected: Sequence[str]) -> None:
    assert len(stored) == len({*stored}), "doubled"
    assert {*stored} == {*expected}


async def test_a_reader_that_is_killed_at_any_step_loses_and_doubles_nothing(
    plan: HistoryPlan, parts: Parts, tmp_path: Path
) -> None:
    _, pg, double = parts
    ended = await end(double, 1)
    await pg.history.read_now()
    deaths = 0
    while True:
        ended += await end(double, 3)
        code = Forked(read_until, plan, deaths + 1, log=tmp_path / "log").wait(60)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        deaths += 1
    assert deaths > 8
    one_each(await ids(pg), ended)
    assert (await pg.history.view()).entries == 0


async def test_workers_that_are_killed_or_frozen_leave_one_row_for_each_job(
    plan: HistoryPlan, parts: Parts, tmp_path: Path
) -> None:
    app, pg, double = parts
    dice, log, receipts = random.Random(5), tmp_path / "log", list[Receipt[int]]()
    workers = [Forked(work, plan, log=log) for _ in range(2)]
    for turn in range(6):
        receipts += await double.enqueue_many(list(range(300)))
        await eventually(lambda: _is_under_way(app))
        victim = dice.randrange(2)
        if turn % 3 == 2:  # it loses its leases
            workers[victim].send(signal.SIGSTOP)
            most = len(receipts) - 20
            await eventually(lambda number=most: has(pg, number))
            workers[victim].send(signal.SIGCONT)
        else:
            workers[victim].kill()
            workers[victim] = Forked(work, plan, log=log)
    await eventually(lambda: has(pg, len(receipts)))
    for one in workers:
        one.kill()
    await pg.history.read_now()
    one_each(await ids(pg), [one.id for one in receipts])
    async with pg.transaction() as connection:
        found = await connection.execute("SELECT DISTINCT state FROM faena.history")
        assert await found.fetchall() == [("completed",)]


async def _is_under_way(app: Faena) -> bool:
    counts = (await app.queues["work"].overview()).counts
    return counts["ready"] < 200


async def test_a_reader_that_comes_back_after_another_has_stored_all(parts: Parts) -> None:
    app, pg, double = parts
    ended = await end(double, 3)
    engine = (await app.runtime()).engine
    slow = HistoryReader(pg, engine, pg.history.options)
    quick = HistoryReader(pg, engine, pg.history.options)
    entries = await slow._stored("work")  # pyright: ignore[reportPrivateUsage] - and it freezes
    assert await quick.take("work") == 3
    ended += await end(double, 2)
    assert await HistoryCalls(engine).done("work", [one.id for one in entries]) == 2
    await quick.take("work")
    one_each(await ids(pg), ended)


async def test_one_reader_works_on_a_shard_at_a_time(parts: Parts) -> None:
    app, pg, double = parts
    await end(double, 2)
    reader = HistoryReader(pg, (await app.runtime()).engine, pg.history.options)
    async with pg.transaction() as connection:
        assert await reader._is_alone(connection, "work")  # pyright: ignore[reportPrivateUsage]
        assert await reader.take("work") == 0
    assert await reader.take("work") == 2


async def test_a_broker_that_is_restarted_or_emptied(
    parts: Parts, server: Server, working: Working
) -> None:
    app, pg, double = parts
    ended = await end(double, 3)
    await pg.history.read_now()
    lost = await end(double, 2)
    with server.client() as client:
        client.flushall()
    assert await pg.history.read_now() == 0
    one_each(await ids(pg), ended)
    receipt = await double.enqueue(7)
    async with working(app):
        await eventually(lambda: has(pg, 4))
    one_each(await ids(pg), [*ended, receipt.id])
    assert not {*lost} & {*await ids(pg)}


async def test_what_ended_survives_a_crash_of_the_broker(namespace: str, database: str) -> None:
    with Server("appendfsync always") as server:
        app, pg, double = history_app(HistoryPlan(server.url, namespace, database))
        async with pg:
            ended = await end(double, 3)
            server.kill()
            server.start()
            ended += await end(double, 2)
            await pg.history.read_now()
            one_each(await ids(pg), ended)
        await obliterate(app)


async def test_postgresql_that_dies_in_the_middle(server: Server, namespace: str) -> None:
    from faena.pg.migration import migrate
    from tests._support.working import serving

    with Cluster(*KILLABLE) as cluster:
        plan = HistoryPlan(server.url, namespace, cluster.create("shop"))
        app, pg, double = history_app(plan)
        async with pg:
            await migrate(pg)
            receipts = await double.enqueue_many(list(range(100)))
            async with serving(app):
                await eventually(lambda: has(pg, 1))
                cluster.kill()
                receipts += await double.enqueue_many(list(range(100)))
                await receipts[-1].handle.cancel()
                cluster.start()
                await eventually(lambda: _has_again(pg, 200))
            one_each(await ids(pg), [one.id for one in receipts])
        await obliterate(app)


async def _has_again(pg: Postgres, number: int) -> bool:
    from faena.errors import StoreUnavailable

    try:
        return await has(pg, number)
    except StoreUnavailable:
        return False


async def test_without_room_the_gap_is_stored_and_told_once(
    app: Faena, database: str, working: Working
) -> None:
    async with Postgres(app, database, history=History()) as pg:

        @app.queue("work", retain=NOTHING).task
        async def double(number: int) -> int:
            return number

        engine = (await app.runtime()).engine
        await engine.declare("work")
        await engine.configure("work", {"history:room": "400"})
        ended = await end(double, 10)
        await pg.history.read_now()
        await pg.history.read_now()
        stored, view = await ids(pg), await pg.history.view()
        assert 0 < len(stored) < 10
        assert view.lost == 10 - len(stored)
        assert {*stored} < {*ended}
        (gap,) = await _told(app, "history_gap")
        assert gap.value == "work"
        assert gap.reason is not None
        assert gap.reason.startswith(f"{view.lost} jobs that ended from ")


async def _told(app: Faena, *names: str) -> list[Event]:
    """All events of some names, which are then forgotten."""
    engine = (await app.runtime()).engine
    found: list[Event] = []
    async with aclosing(app.events(since="start", kinds=[*names])) as events:
        while len(found) < len(names):
            found.append(await anext(events))
    entries = await engine.command("XLEN", SHARD, "events")
    assert entries == len(names), "told once"
    await engine.command("DEL", SHARD, "events")
    return found


async def test_lag_is_told_once_and_so_is_its_end(parts: Parts) -> None:
    app, pg, double = parts
    engine = (await app.runtime()).engine
    await end(double, 1)
    for _ in range(2):
        await Lag(engine, 0).look("work")
    assert (await pg.history.view()).oldest_s is not None
    await pg.history.read_now()
    for _ in range(2):
        await Lag(engine, 1_000_000).look("work")
    assert (await pg.history.view()).oldest_s is None
    late, on_time = await _told(app, "history_late", "history_on_time")
    assert (late.value, on_time.value) == ("work", "work")
    assert late.reason is not None
    assert late.reason.startswith("1 entries wait, the oldest for")


async def test_what_is_struck_off_is_on_disk_whatever_the_servers_settings_are(
    parts: Parts,
) -> None:
    app, pg, _ = parts
    reader = HistoryReader(pg, (await app.runtime()).engine, pg.history.options)
    for given, wanted in (("off", "on"), ("remote_apply", "remote_apply")):
        async with pg.transaction() as connection:
            await connection.execute(f"SET LOCAL synchronous_commit TO {given}".encode())
            assert await reader._is_alone(connection, "work")  # pyright: ignore[reportPrivateUsage]
            found = await connection.execute("SHOW synchronous_commit")
            assert await found.fetchone() == (wanted,)
