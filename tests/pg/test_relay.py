"""What the relay promises, one claim at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from faena import Backpressure, Faena, Job, Retain
from faena.errors import StoreRejected
from faena.pg import Postgres
from faena.pg.refill import Refill
from faena.pg.relay import OutboxRelay
from faena.pg.settlement import Settlements
from faena.task import Task
from tests._support.eventually import eventually
from tests._support.postgres import Cluster
from tests._support.valkey import Server
from tests._support.working import Working, serving


def _declare(app: Faena, ran: list[Any], queue: str = "work", **options: Any) -> Task[int, None]:
    @app.queue(queue, **options).task
    async def note(number: int, job: Job) -> None:
        ran.append(number)

    return note


async def _enqueue(pg: Postgres, task: Task[int, None], *numbers: int, **options: Any) -> list[str]:
    async with pg.transaction() as connection:
        return [await pg.outbox.enqueue(connection, task, one, **options) for one in numbers]


class Hand:
    """The parts of the relay, moved by hand."""

    def __init__(self, pg: Postgres, engine: Any, recipient: str) -> None:
        self.settlements = Settlements(pg, engine, recipient)
        self.refill = Refill(pg, engine, self.settlements, recipient)
        self.relay = OutboxRelay(pg, self.settlements, recipient)
        self._pg = pg

    async def send(self, *, is_noted: bool = True) -> int | None:
        """Relay once; without a note, as one that dies between sending and noting."""
        async with self._pg.session() as connection:
            if is_noted:
                return await self.relay.run_once(connection)
            if self.settlements.swept_at == 0:
                await self.settlements.sweep()
            execute = connection.execute

            async def cut(query: Any, *args: Any) -> Any:
                is_note = isinstance(query, bytes) and b"SET sent_at" in query
                return await (execute("ROLLBACK") if is_note else execute(query, *args))

            connection.execute = cut  # type: ignore[method-assign]
            return await self.relay.run_once(connection)


@pytest.fixture
async def hand(app: Faena, pg: Postgres) -> Hand:
    return await _hand(pg)


@pytest.fixture
async def still(app: Faena, database: str) -> AsyncIterator[Postgres]:
    """Workers relay nothing of it: a `Hand` does."""
    async with Postgres(app, database, relay=False) as pg:
        yield pg


@pytest.fixture
async def lone(server: Server, namespace: str, database: str) -> AsyncIterator[Postgres]:
    """The same on a broker that may lose its data."""
    app = Faena("shop", server.url, namespace=namespace)
    async with Postgres(app, database, relay=False) as pg:
        yield pg
    await app.close()


async def _hand(pg: Postgres) -> Hand:
    return Hand(pg, (await pg.app.runtime()).engine, f"@{await pg.outbox.name()}")


async def _view(pg: Postgres) -> tuple[int, int, int]:
    view = await pg.outbox.view()
    return view.pending, view.sent, view.refused


async def test_a_full_queue_keeps_its_rows_in_order_while_others_go_on(
    app: Faena, pg: Postgres, working: Working, hand: Hand
) -> None:
    ran: list[Any] = []
    pressure = Backpressure(hard=3, max_delay="50ms")
    full = _declare(app, ran, "full", order="tenant", backpressure=pressure)
    free = _declare(app, ran, "free")
    await pg.outbox.publish()
    await _enqueue(pg, full, *range(10), tenant="a")
    await _enqueue(pg, free, 100, 101)
    assert await hand.send() == 5
    assert (await pg.outbox.view()).queues == {"full": 7}
    async with working(app):
        await eventually(lambda: len(ran) == 12)
    assert [one for one in ran if one < 100] == [*range(10)]


async def test_once_a_job_is_refused_no_later_one_of_its_queue_is_sent(
    app: Faena, pg: Postgres, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slot may become free between two calls, and then the second would overtake the first."""
    queue = app.queue("full", order="tenant", backpressure=Backpressure(hard=3))

    @queue.task
    async def one(number: int) -> None: ...

    @queue.task
    async def two(number: int) -> None: ...

    await pg.outbox.publish()
    for number in range(5):
        await _enqueue(pg, one, number, tenant="a")
        await _enqueue(pg, two, number, tenant="a")
    put, calls = Task.put_sealed, list[str]()

    async def watched(task: Task[Any, Any], jobs: Any) -> Any:
        calls.append(task.name)
        return await put(task, jobs)

    monkeypatch.setattr(Task, "put_sealed", watched)
    assert await hand.send() == 3
    assert await hand.send() == 0  # it is held for a while
    assert calls == ["one", "two", "one", "two"]


async def test_a_long_backlog_of_one_queue_does_not_delay_the_others(
    app: Faena, pg: Postgres, hand: Hand
) -> None:
    long, short = _declare(app, [], "long"), _declare(app, [], "short")
    await pg.outbox.publish()
    async with pg.transaction() as connection:
        await pg.outbox.enqueue_many(connection, long, range(2500))
        await pg.outbox.enqueue(connection, short, 1)
    hand.relay._terms = hand.relay._terms._replace(batch=100)
    sent: list[str] = []
    send = hand.relay._dispatch.send

    async def watched(taken: Any) -> Any:
        sent.extend(row.queue for row in taken.rows)
        return await send(taken)

    hand.relay._dispatch.send = watched  # type: ignore[method-assign]
    assert await hand.send() == 2501
    assert sent.index("short") <= 200


async def test_an_unknown_task_of_an_ordered_queue_is_not_overtaken(
    app: Faena, pg: Postgres, hand: Hand
) -> None:
    _declare(app, [], "ordered", order="tenant")
    _declare(app, [], "plain")
    await pg.outbox.publish()
    async with pg.transaction() as connection:
        await connection.execute(
            "INSERT INTO faena.tasks SELECT queue, 'newer', schema, payload_limit, needs_tenant, "
            "needs_key FROM faena.tasks"
        )
        for queue in ("ordered", "plain"):
            for task in ("newer", "note"):
                await connection.execute(
                    f"SELECT faena.enqueue('{queue}', '{task}', '1', tenant => 'a')".encode()
                )
    assert await hand.send() == 1
    assert (await pg.outbox.view()).queues == {"ordered": 2, "plain": 1}


async def test_a_refused_row_says_why_and_may_be_corrected(
    app: Faena, pg: Postgres, working: Working, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[Any] = []
    note = _declare(app, ran)
    await pg.outbox.publish()
    await note.enqueue(1, id="one", delay="1h")
    await _enqueue(pg, note, 2, id="one")
    async with working(app):
        await eventually(lambda: _is(pg, (0, 0, 1)))
        async with pg.transaction() as connection:
            found = await connection.execute("SELECT refused FROM faena.outbox")
            assert await found.fetchone() == ("another job of queue work has the id one",)
            await connection.execute("UPDATE faena.outbox SET refused = NULL, id = 'two'")
        await eventually(lambda: ran == [2])
    assert "is refused: another job of queue work has the id one" in caplog.text


async def _is(pg: Postgres, expected: tuple[int, int, int]) -> bool:
    return await _view(pg) == expected


async def test_a_row_that_no_queue_takes_any_more_blocks_no_other(
    app: Faena, pg: Postgres, working: Working
) -> None:
    """It was written before its queue kept an order."""
    ran: list[Any] = []
    note = _declare(app, ran, order="tenant")
    await pg.outbox.publish()
    async with pg.transaction() as connection:
        await connection.execute("UPDATE faena.tasks SET needs_tenant = false")
        await connection.execute("SELECT faena.enqueue('work', 'note', '1')")
    await _enqueue(pg, note, 2, tenant="a")
    async with working(app):
        await eventually(lambda: ran == [2])
        await eventually(lambda: _is(pg, (0, 0, 1)))


async def test_durability_broker_keeps_no_row_and_is_not_refilled(
    lone: Postgres, server: Server
) -> None:
    note = _declare(lone.app, [])
    await lone.outbox.publish()
    hand = await _hand(lone)
    await _enqueue(lone, note, 1, durability="broker", delay="1h")
    await _enqueue(lone, note, 2, delay="1h")
    assert await hand.send() == 2
    assert await _view(lone) == (0, 1, 0)
    _lose(server)
    assert await hand.refill.run_once() == 1


def _lose(server: Server) -> None:
    with server.client() as client:
        client.flushall()


async def test_a_job_delayed_for_days_survives_the_loss_of_the_broker(
    lone: Postgres, server: Server
) -> None:
    ran: list[Any] = []
    note = _declare(lone.app, ran)
    await lone.outbox.publish()
    hand = await _hand(lone)
    (job,) = await _enqueue(lone, note, 1, delay="3d", tenant="acme")
    await hand.refill.run_once()
    await hand.send()
    before = await note.handle(job).view()
    _lose(server)
    assert await _refilled(hand) == 1
    await hand.send()
    after = await note.handle(job).view()
    assert before is not None
    assert after is not None
    assert (after.state, after.due_at, after.tenant) == (before.state, before.due_at, "acme")
    async with serving(lone.app):
        await note.handle(job).promote()
        await eventually(lambda: ran == [1])
        await eventually(lambda: _is_gone(note))
        await hand.settlements.sweep()
    assert await _view(lone) == (0, 0, 0)


async def _refilled(hand: Hand) -> int:
    """Refill, though it was looked at just now."""
    hand.refill._looked_at = -5.0
    return await hand.refill.run_once()


async def test_a_server_with_another_run_id_is_compared(lone: Postgres, server: Server) -> None:
    """Its mark is there, its last jobs are not: it was restarted from what it had on disk."""
    note = _declare(lone.app, [])
    await lone.outbox.publish()
    hand = await _hand(lone)
    await _enqueue(lone, note, 1, delay="1h")
    await hand.refill.run_once()
    await hand.send()
    _lose(server)
    engine, mark = (await lone.app.runtime()).engine, f"@{await lone.outbox.name()}"
    await engine.command("HSET", "work", "received", mark, "0-0")
    assert await _refilled(hand) == 0
    async with lone.transaction() as connection:
        await connection.execute("UPDATE faena.brokers SET servers = 'another'")
    assert await _refilled(hand) == 1


async def test_a_relay_that_died_before_its_note_sends_nothing_twice_within_a_minute(
    app: Faena, still: Postgres, working: Working
) -> None:
    """The job has come and gone after the sweep: `sent:` alone tells of it."""
    ran: list[Any] = []
    note = _declare(app, ran, retain=Retain(completed_count=0))
    await still.outbox.publish()
    hand = await _hand(still)
    async with working(app):
        await _enqueue(still, note, 1)
        await hand.send(is_noted=False)
        await eventually(lambda: ran == [1])
        await eventually(lambda: _is_gone(note))
        assert await _view(still) == (1, 0, 0)
        assert await hand.send() == 1
        assert await _view(still) == (0, 0, 0)
        await _enqueue(still, note, 2)
        await hand.send()
        await eventually(lambda: 2 in ran)
    assert ran == [1, 2]


async def _is_gone(task: Task[int, None]) -> bool:
    counts = await task.app.queues[task.queue].counts()
    return not (counts["ready"] or counts["running"])


async def test_a_relay_that_died_before_its_note_sends_nothing_twice_after_a_minute(
    app: Faena, still: Postgres, working: Working
) -> None:
    """The broker has forgotten that the job has come and gone: the sweep alone tells of it."""
    ran: list[Any] = []
    note = _declare(app, ran, retain=Retain(completed_count=0))
    await still.outbox.publish()
    hand = await _hand(still)
    async with working(app):
        (job,) = await _enqueue(still, note, 1)
        await hand.send(is_noted=False)
        await eventually(lambda: ran == [1])
        await eventually(lambda: _is_gone(note))
        await _forget(app, job)
        hand.settlements.swept_at = 0.0
        assert await hand.send() == 0
        assert await _view(still) == (0, 0, 0)
    assert ran == [1]


async def _forget(app: Faena, job: str) -> None:
    runtime = await app.runtime()
    for shard in await runtime.routers.of("work").names():
        assert await runtime.engine.command("DEL", shard, f"sent:{job}") == 1


async def test_the_broker_refuses_what_is_sent_long_after_the_sweep(
    app: Faena, pg: Postgres, hand: Hand, working: Working
) -> None:
    """A relay that slept between its sweep and its send must look again first."""
    ran: list[Any] = []
    note = _declare(app, ran)
    await pg.outbox.publish()
    await _enqueue(pg, note, 1)
    await hand.settlements.sweep()
    hand.settlements.complete_until_us -= 60_000_000
    assert await hand.send() == 0
    assert await _view(pg) == (1, 0, 0)
    async with working(app):
        await eventually(lambda: ran == [1])


async def test_a_row_whose_job_is_already_settled_goes(
    app: Faena, pg: Postgres, working: Working
) -> None:
    ran: list[Any] = []
    note = _declare(app, ran)
    await pg.outbox.publish()
    async with working(app):
        for _ in range(2):  # the second time the broker still knows the completed job
            await _enqueue(pg, note, 1, id="one")
            await eventually(lambda: _is(pg, (0, 0, 0)))
    assert ran == [1]


async def test_a_session_that_cannot_listen_is_closed(
    still: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The relay tries again and again: each try would leave one at the server."""
    hand, connect, made = await _hand(still), still.connect_past, list[Any]()

    async def failing() -> Any:
        made.append(await connect())
        with suppress(psycopg.Error):
            await made[-1].execute("BEGIN; SELECT 1 / 0")
        return made[-1]

    monkeypatch.setattr(still, "connect_past", failing)
    with pytest.raises(StoreRejected, match="transaction is aborted"):
        await hand.relay._listening()
    assert [one.closed for one in made] == [True]


@pytest.mark.parametrize("direct", ["nowhere", "elsewhere"])
async def test_a_wrong_direct_url_is_told_and_the_outbox_polled(
    app: Faena, cluster: Cluster, database: str, direct: str, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[Any] = []
    note = _declare(app, ran)
    other = f"{database.partition('/test_')[2].partition('?')[0]}_other"
    urls = {"nowhere": "postgresql://nobody@127.0.0.1:1/x", "elsewhere": cluster.url(other)}
    if direct == "elsewhere":
        cluster.create(other, "migrated")
    try:
        async with Postgres(app, database, direct_url=urls[direct]) as pg:
            await pg.outbox.publish()
            with caplog.at_level(logging.WARNING, "faena.pg"):
                async with serving(app):
                    await _enqueue(pg, note, 1)
                    await eventually(lambda: ran == [1])
                    await eventually(lambda: _is(pg, (0, 0, 0)))
    finally:
        cluster.drop(other)
    assert "the outbox is polled, as direct_url must be one that works: " in caplog.text
    words = {"nowhere": "cannot be reached", "elsewhere": "another database than url"}
    assert words[direct] in caplog.text


async def test_ten_thousand_jobs_of_one_transaction_run_once(
    app: Faena, pg: Postgres, working: Working
) -> None:
    ran: list[Any] = []
    note = _declare(app, ran, concurrency=200, retain=Retain(completed_count=0))
    await pg.outbox.publish()
    async with pg.transaction() as connection:
        await pg.outbox.enqueue_many(connection, note, range(10_000))
    async with working(app):
        await eventually(lambda: _is(pg, (0, 0, 0)))
    assert sorted(ran) == [*range(10_000)]


async def test_rows_of_many_bytes_are_taken_few_at_a_time(app: Faena, pg: Postgres) -> None:
    @app.queue("big").task
    async def keep(text: str) -> None: ...

    await pg.outbox.publish()
    async with pg.transaction() as connection:
        await pg.outbox.enqueue_many(connection, keep, ["x" * 1000 for _ in range(10)])
    for bytes_, expected in ((2500, 2), (10, 1), (100_000, 10)):
        async with pg.transaction() as connection:
            found = await connection.execute(
                "SELECT is_more FROM faena.take('[[\"big\", null]]', 1000, %s, '1s')", [bytes_]
            )
            assert await found.fetchall() == [(expected < 10,)] * expected
    await asyncio.sleep(0)
