"""Jobs as readers see them: the broker's and those of the history together, each once."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from faena import Discard, Faena, Retain
from faena.engine.calls.deadletter import Position
from faena.engine.calls.history import HistoryCalls
from faena.errors import ConfigError
from faena.pg import History, Postgres
from faena.pg.history.partition import Keeper
from faena.pg.history.past import PostgresPast
from faena.queue import Queue
from faena.sharding.routing_table import index_of
from faena.states import State
from faena.task import Task
from tests._support.eventually import eventually
from tests._support.working import Working

FEW = Retain(completed_count=3, cancelled_count=3)


@pytest.fixture
async def kept(app: Faena, database: str) -> AsyncIterator[Postgres]:
    async with Postgres(app, database, relay=False, history=History()) as pg:
        yield pg


def declare(app: Faena, **options: Any) -> Task[int, int]:
    @app.queue("mail", **{"retain": FEW, **options}).task
    async def send(number: int) -> int:
        return number

    return send


async def cancel(send: Task[int, int], number: int, **options: Any) -> list[str]:
    receipts = [await send.enqueue(one, **options) for one in range(number)]
    for one in receipts:
        await one.handle.cancel()
    return [one.id for one in receipts]


async def pages(
    queue: Queue, state: str = "cancelled", *, limit: int = 3, **options: Any
) -> list[tuple[str, str]]:
    """Ids and sources over all pages."""
    found: list[tuple[str, str]] = []
    cursor = None
    for _ in itertools.count():
        page = await queue.jobs(state, limit=limit, cursor=cursor, **options)
        found += [(one.id, one.source) for one in page.jobs]
        cursor = page.cursor
        if cursor is None:
            return found
        assert len(found) < 500, "no end"
    return found


@pytest.mark.parametrize("limit", [1, 3, 4, 100])
async def test_a_page_has_the_jobs_of_both_each_once(
    app: Faena, kept: Postgres, limit: int
) -> None:
    send = declare(app)
    queue, ids = app.queues["mail"], await cancel(send, 10)
    await kept.history.read_now()
    live = {job for job, _ in await pages(queue, source="broker")}
    assert 0 < len(live) < 10
    found = await pages(queue, limit=limit)
    assert [job for job, _ in found] == ids
    assert {job for job, source in found if source == "broker"} == live
    newest = await pages(queue, limit=limit, is_newest_first=True)
    assert newest == found[::-1]
    assert await pages(queue, limit=limit, source="history") == [
        (job, "history") for job in ids if job not in live
    ]


async def test_what_is_not_stored_yet_is_the_brokers_alone(app: Faena, kept: Postgres) -> None:
    send = declare(app)
    ids = await cancel(send, 2)
    assert await pages(app.queues["mail"]) == [(job, "broker") for job in ids]


async def test_a_job_that_runs_again_is_shown_as_it_is_now(app: Faena, kept: Postgres) -> None:
    send = declare(app)
    first, second = await cancel(send, 2)
    await kept.history.read_now()
    await send.handle(first).rerun()
    assert await pages(app.queues["mail"]) == [(second, "broker")]
    await send.handle(first).cancel()
    await kept.history.read_now()
    for job in (first, second):
        await send.handle(job).remove()
    assert await pages(app.queues["mail"]) == [(second, "history"), (first, "history")]
    assert len(await kept.history.job("mail", first)) == 2


async def test_live_states_and_queues_without_a_history_ask_nobody_else(
    app: Faena, database: str
) -> None:
    absent = "postgresql://postgres@127.0.0.1:1/none"
    async with Postgres(app, absent, relay=False, history=History(queues=["mail"])):
        send = declare(app)
        await send.enqueue(1)
        assert [source for _, source in await pages(app.queues["mail"], "ready")] == ["broker"]

        @app.queue("other").task
        async def note() -> None: ...

        await cancel_one(note)
        assert len(await pages(app.queues["other"])) == 1
        assert await app.queues["other"].handle("none").view() is None


async def cancel_one(note: Task[None, None]) -> None:
    await (await note.enqueue()).handle.cancel()


async def test_a_job_is_found_that_the_broker_has_no_more(app: Faena, kept: Postgres) -> None:
    send = declare(app, retain=Retain(cancelled_count=0))
    (job,) = await cancel(send, 1, tenant="acme", priority=7)
    assert await send.handle(job).view() is None
    await kept.history.read_now()
    view = await send.handle(job).view()
    assert view is not None
    assert (view.source, view.state.value, view.ended) == ("history", "cancelled", "cancelled")
    assert (view.tenant, view.priority, view.task) == ("acme", 7, "send")
    assert bytes(view.payload) == b"null"
    assert view.to_dict()["source"] == "history"


async def test_wrong_sources_are_refused(app: Faena, kept: Postgres) -> None:
    declare(app)
    with pytest.raises(ConfigError, match="source must be 'both' or 'broker' or 'history'"):
        await app.queues["mail"].jobs("dead", source="disk")  # type: ignore[arg-type]


# -- shards --------------------------------------------------------------------------------------


async def test_jobs_of_shards_that_come_and_go_have_one_row_each(
    app: Faena, kept: Postgres, working: Working
) -> None:
    send = declare(app, fair=True)
    queue, ids = app.queues["mail"], list[str]()
    async with working(app):
        for shards in (3, 1, 2, 1):
            for number in range(35):
                ids.append((await send.enqueue(number, tenant=f"t{number % 7}")).id)
            await queue.reshard(shards)
        await eventually(lambda: _has(kept, len(ids)))
    found = await pages(queue, "completed", limit=40)
    assert sorted(job for job, _ in found) == sorted(ids)
    async with kept.transaction() as connection:
        rows = await connection.execute("SELECT id FROM faena.history")
        assert sorted(job for (job,) in await rows.fetchall()) == sorted(ids)


async def _has(pg: Postgres, number: int) -> bool:
    async with pg.transaction() as connection:
        found = await connection.execute("SELECT count(*) FROM faena.history")
        row = await found.fetchone()
        return row is not None and row[0] >= number


async def test_what_a_shard_had_when_it_was_given_up_is_stored(app: Faena, kept: Postgres) -> None:
    send = declare(app, fair=True)
    queue = app.queues["mail"]
    await queue.reshard(4)
    for number in range(12):
        await cancel(send, 1, tenant=f"t{number}")
    await queue.reshard(1)
    calls = HistoryCalls((await app.runtime()).engine)
    assert sum([len(await calls.read(f"mail/{shard}")) for shard in (1, 2, 3)]) > 0
    await kept.history.read_now()
    assert await _has(kept, 12)
    assert (await kept.history.view()).entries == 0


async def test_the_rest_of_an_obliterated_queue_is_stored(app: Faena, kept: Postgres) -> None:
    send = declare(app)
    await cancel(send, 2)
    await send.enqueue(3)
    await app.queues["mail"].obliterate()
    await kept.history.read_now()
    async with kept.transaction() as connection:
        found = await connection.execute("SELECT state FROM faena.history ORDER BY state")
        assert await found.fetchall() == [("cancelled",), ("cancelled",), ("removed",)]


# -- partitions ----------------------------------------------------------------------------------


async def test_partitions_are_made_as_rows_need_them_and_dropped_when_too_old(
    app: Faena, database: str
) -> None:
    options = History(keep="60d", every="week")
    async with Postgres(app, database, relay=False, history=options) as pg:
        send = declare(app)
        await cancel(send, 1)
        await pg.history.read_now()
        (view,) = await pg.partitions()
        assert view.table == "faena.history"
        assert [one for one in view.problems if "default" in one] == []
        old = datetime.now(UTC) - timedelta(days=80)
        keeper = Keeper(pg, options)
        await keeper.table.ensure(since=old.date())
        before = {one.name for one in (await keeper.table.view()).partitions}
        dropped = await keeper.drop_old()
        assert 1 <= len(dropped) <= 3
        assert {one.name for one in (await keeper.table.view()).partitions} == before - {*dropped}
        assert await keeper.drop_old() == []
        assert await _has(pg, 1)


async def test_one_that_was_detached_and_not_dropped_goes_the_next_time(
    app: Faena, database: str
) -> None:
    options = History(keep="60d", every="month")
    async with Postgres(app, database, relay=False, history=options) as pg:
        keeper = Keeper(pg, options)
        await keeper.table.ensure(since=(datetime.now(UTC) - timedelta(days=130)).date())
        oldest = (await keeper.table.view()).partitions[0].name
        await keeper.table.detach(oldest)
        assert oldest in await keeper.drop_old()
        with psycopg.connect(database) as connection:
            found = connection.execute("SELECT to_regclass(%s)", [f"faena.{oldest}"]).fetchone()
            assert found == (None,)


async def test_jobs_that_ended_in_another_age_are_a_gap(app: Faena, kept: Postgres) -> None:
    send = declare(app)
    clocked = (await app.runtime()).engine
    clocked.clock = lambda: 1_000_000_000_000_000  # 2001
    await cancel(send, 2)
    clocked.clock = None
    ids = await cancel(send, 1)
    await kept.history.read_now()
    assert (await kept.history.view()).lost == 2
    assert [one.id for one in (await kept.history.search()).jobs] == ids
    (view,) = await kept.partitions()
    assert len(view.partitions) < 20, "none was made for another age"
    await clocked.command("DEL", "@resilience", "events")


async def test_tenants_with_jobs_of_the_same_id_hide_none_of_each_other(
    app: Faena, kept: Postgres
) -> None:
    declare(app)
    await Keeper(kept, kept.history.options).ensure()
    past = PostgresPast(kept, kept.history)
    async with kept.transaction() as connection:
        await connection.execute(
            "INSERT INTO faena.history (id, queue, finished_at, state, task, tenant, priority,"
            " attempts, losses, origin) SELECT 'same', 'mail', now() - n * interval '1 s',"
            " 'cancelled', 'send', 't' || n, 1, 0, 0, 'same' FROM generate_series(0, 2) n"
        )
    found = await past.page("mail", State.CANCELLED, 9, Position("", ""), is_newest_first=True)
    assert [one.tenant for one in found] == ["t0", "t1", "t2"]


async def test_a_partition_with_rows_that_are_kept_stays_in_the_table(
    app: Faena, database: str
) -> None:
    options = History(keep="45d", every="month")
    async with Postgres(app, database, relay=False, history=options) as pg:
        keeper = Keeper(pg, options)
        await keeper.ensure(since=(datetime.now(UTC) - timedelta(days=45)).date())
        before = [one.name for one in (await keeper.table.view()).partitions]
        assert await keeper.drop_old() == []
        assert [one.name for one in (await keeper.table.view()).partitions] == before


async def test_a_handle_finds_its_tenants_past_job(kept: Postgres, app: Faena) -> None:
    send = declare(app, retain=Retain(cancelled_count=0), fair=True)
    await app.queues["mail"].reshard(2)
    by_shard = {index_of(f"@{tenant}", 2): tenant for tenant in ("t0", "t1", "t2", "t3", "t4")}
    handles = {
        who: (await send.enqueue(1, id="order-7", tenant=who)).handle for who in by_shard.values()
    }
    for handle in handles.values():
        await handle.cancel()
    await kept.history.read_now()
    for who, handle in handles.items():
        view = await handle.view()
        assert view is not None
        assert (view.tenant, view.source) == (who, "history")


async def test_what_was_decided_about_a_dead_job_does_not_hide_its_death(
    app: Faena, kept: Postgres, working: Working
) -> None:
    queue = app.queue("mail", retain=FEW)

    @queue.task
    async def fail(number: int) -> None:
        raise Discard("never")

    async with working(app):
        ids = [(await fail.enqueue(number)).id for number in range(2)]
        await eventually(lambda: _are_dead(queue, 2))
    await app.dead_letters.discard("mail", ids[0])
    await app.dead_letters.resolve("mail", ids[1])
    await kept.history.read_now()
    for job in ids:
        await fail.handle(job).remove()
    assert sorted(await pages(queue, "dead")) == sorted((job, "history") for job in ids)
    for job in ids:
        view = await fail.handle(job).view()
        assert view is not None
        assert (view.state, view.ended, view.source) == (State.DEAD, "dead", "history")
        assert len(await kept.history.job("mail", job)) == 2


async def _are_dead(queue: Queue, number: int) -> bool:
    return (await queue.counts())["dead"] == number


async def test_a_job_of_another_queue_with_the_same_id_hides_none(
    app: Faena, kept: Postgres
) -> None:
    @app.queue("bills", retain=Retain(cancelled_count=0)).task
    async def bill(number: int) -> None: ...

    send = declare(app, retain=Retain(cancelled_count=0))
    for task in (send, bill):  # the later one in the other queue
        await (await task.enqueue(1, id="order-7")).handle.cancel()
    await kept.history.read_now()
    for queue in ("mail", "bills"):
        assert await pages(app.queues[queue]) == [("order-7", "history")]
        assert await app.queues[queue].handle("order-7").view() is not None


async def test_a_partition_that_was_detached_by_hand_stays_while_rows_of_it_are_to_be_kept(
    app: Faena, database: str
) -> None:
    options = History(keep="45d", every="month")
    async with Postgres(app, database, relay=False, history=options) as pg:
        keeper = Keeper(pg, options)
        oldest_kept = datetime.now(UTC) - timedelta(days=45)
        await keeper.ensure(since=oldest_kept.date())
        straddling = (await keeper.table.view()).partitions[0]
        assert straddling.start is not None
        assert straddling.start <= oldest_kept
        await keeper.table.detach(straddling.name)
        assert await keeper.drop_old() == []
        with psycopg.connect(database) as connection:
            assert connection.execute(f"TABLE faena.{straddling.name}".encode()).fetchall() == []


async def test_the_totals_are_those_of_one_namespace(
    app: Faena, kept: Postgres, database: str
) -> None:
    async with kept.transaction() as connection:
        await connection.execute(
            "INSERT INTO faena.history_shards (namespace, shard, entry, stored)"
            " VALUES ('another', 'mail', '1-1', 70)"
        )
        await connection.execute(
            "INSERT INTO faena.history_gaps (namespace, shard, entry, reason, jobs, since, until)"
            " VALUES ('another', 'mail', '1-1', 'room', 5, now(), now())"
        )
    await cancel(declare(app), 2)
    await kept.history.read_now()
    view = await kept.history.view()
    assert (view.stored, view.lost) == (2, 0)
