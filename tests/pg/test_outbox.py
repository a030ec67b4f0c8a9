"""Jobs that are enqueued with the transaction they belong to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from faena import Event, Faena, Job, Order
from faena.engine.calls.resilience import SHARD
from faena.errors import ArgumentError, PayloadError, StoreUnavailable
from faena.pg import Postgres, refill
from faena.pg.lag import Lag
from faena.pg.migration import migrate
from faena.pg.refill import Refill
from faena.pg.relay import OutboxRelay
from faena.pg.settlement import Settlements
from faena.task import Task
from tests._support.eventually import eventually
from tests._support.working import Working


@dataclass
class Invoice:
    number: int
    customer: str


def _declare(app: Faena, ran: list[Any]) -> Task[Invoice, None]:
    @app.queue("invoices").task
    async def issue(invoice: Invoice, job: Job) -> None:
        ran.append((invoice.number, job.id, job.tenant))

    return issue


async def _rows(pg: Postgres) -> list[tuple[Any, ...]]:
    async with pg.transaction() as connection:
        found = await connection.execute("SELECT id, sent_at, refused FROM faena.outbox")
        return await found.fetchall()


async def _is_empty(pg: Postgres) -> bool:
    return not await _rows(pg)


async def test_a_job_of_a_transaction_that_commits_runs_and_its_row_goes(
    app: Faena, pg: Postgres, working: Working
) -> None:
    ran: list[Any] = []
    issue = _declare(app, ran)
    await pg.outbox.publish()
    async with working(app):
        async with pg.transaction() as connection:
            job = await pg.outbox.enqueue(connection, issue, Invoice(7, "ana"), tenant="acme")
            await asyncio.sleep(0)
            assert ran == []
        await eventually(lambda: bool(ran))
        assert ran == [(7, job, "acme")]
        await eventually(lambda: _is_empty(pg))


async def test_a_job_of_a_transaction_that_rolls_back_never_was(
    app: Faena, pg: Postgres, working: Working
) -> None:
    ran: list[Any] = []
    issue = _declare(app, ran)
    await pg.outbox.publish()

    async def fail() -> None:
        async with pg.transaction() as connection:
            await pg.outbox.enqueue(connection, issue, Invoice(7, "ana"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    async with pg.transaction() as connection:
        await pg.outbox.enqueue(connection, issue, Invoice(8, "ana"))
    async with working(app):
        await eventually(lambda: bool(ran))
    assert [number for number, _, _ in ran] == [8]


async def test_a_row_that_commits_late_is_not_skipped(
    app: Faena, pg: Postgres, working: Working
) -> None:
    ran: list[Any] = []
    issue = _declare(app, ran)
    await pg.outbox.publish()
    async with working(app):
        async with pg.transaction() as late:
            await pg.outbox.enqueue(late, issue, Invoice(1, "late"))
            async with pg.transaction() as early:
                await pg.outbox.enqueue(early, issue, Invoice(2, "early"))
            await eventually(lambda: bool(ran))
        await eventually(lambda: len(ran) == 2)
    assert [number for number, _, _ in ran] == [2, 1]


async def test_plain_sql_is_checked_as_python_is(app: Faena, pg: Postgres) -> None:
    issue = _declare(app, [])
    await pg.outbox.publish()
    with pytest.raises(ArgumentError, match=r"1 bad field: number must be an integer, got string"):
        async with pg.transaction() as connection:
            await connection.execute(
                "SELECT faena.enqueue('invoices', 'issue', "
                '\'{"number": "seven", "customer": "ana"}\')'
            )
    with pytest.raises(PayloadError, match=r"number expected int, got str"):
        pg.outbox.statement(issue, {"number": "seven", "customer": "ana"})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("'invoices', 'isue', '{}'", r"declared, got invoices/isue; declared are invoices/issue"),
        ("'invoices', 'issue', '{}'", r"2 bad fields: number is required; customer is required"),
        ("'invoices', 'issue', '[]'", r"\$ must be an object, got array"),
        ("'invoices', 'issue', NULL", r"payload must be JSON, got NULL"),
        ("'invoices', 'issue', '{}', priority => 0", r"priority must be 1 to 100, got 0"),
        ("'invoices', 'issue', '{}', id => 'a b'", r"id must have 1 to 128 printable"),
        ("'invoices', 'issue', '{}', headers => '[]'", r"headers must be an object of strings"),
        ("'invoices', 'issue', '{}', durability => 'x'", r"durability must be outbox or broker"),
    ],
)
async def test_bad_calls_are_refused_with_a_reason(
    app: Faena, pg: Postgres, call: str, words: str
) -> None:
    _declare(app, [])
    await pg.outbox.publish()
    with pytest.raises(ArgumentError, match=words):
        async with pg.transaction() as connection:
            await connection.execute(f"SELECT faena.enqueue({call})".encode())
    assert await _rows(pg) == []


async def test_a_payload_that_postgresql_cannot_store_is_refused(app: Faena, pg: Postgres) -> None:
    issue = _declare(app, [])
    await pg.outbox.publish()
    with pytest.raises(PayloadError, match="payload must have no NUL character"):
        async with pg.transaction() as connection:
            await pg.outbox.enqueue(connection, issue, Invoice(7, "a\0na"))


async def test_an_order_needs_its_tenant_in_sql_too(app: Faena, pg: Postgres) -> None:
    @app.queue("ordered", order=Order.KEY).task
    async def step(number: int) -> None: ...

    await pg.outbox.publish()
    with pytest.raises(ArgumentError, match="tenant must be given"):
        async with pg.transaction() as connection:
            await connection.execute("SELECT faena.enqueue('ordered', 'step', '1')")
    with pytest.raises(ArgumentError, match="key must be given"):
        async with pg.transaction() as connection:
            await connection.execute("SELECT faena.enqueue('ordered', 'step', '1', tenant => 'a')")


async def test_the_same_id_is_the_same_job(app: Faena, pg: Postgres, working: Working) -> None:
    ran: list[Any] = []
    issue = _declare(app, ran)
    await pg.outbox.publish()
    async with pg.transaction() as connection:
        for _ in range(2):
            assert await pg.outbox.enqueue(connection, issue, Invoice(1, "a"), id="one") == "one"
    with pytest.raises(ArgumentError, match="id must be new, got one"):
        async with pg.transaction() as connection:
            await pg.outbox.enqueue(connection, issue, Invoice(2, "a"), id="one")
    async with working(app):
        await eventually(lambda: _is_empty(pg))
    assert ran == [(1, "one", None)]


async def test_other_drivers_get_a_statement(app: Faena, pg: Postgres, database: str) -> None:
    issue = _declare(app, [])
    await pg.outbox.publish()
    with psycopg.connect(database) as connection, connection.cursor() as cursor:
        pg.outbox.enqueue_sync(cursor, issue, Invoice(1, "a"), delay="5m", priority="high")
    made = pg.outbox.statement(issue, Invoice(2, "b"), tenant="acme")
    assert ":exact" in made.named_sql
    assert made.named["tenant"] == "acme"
    assert (await pg.outbox.view()).pending == 1


async def test_a_removed_job_leaves_no_row(app: Faena, pg: Postgres, working: Working) -> None:
    ran: list[Any] = []
    issue = _declare(app, ran)
    await pg.outbox.publish()
    async with pg.transaction() as connection:
        job = await pg.outbox.enqueue(connection, issue, Invoice(1, "a"), delay="1h")
    async with working(app):
        await eventually(lambda: _is_sent(pg))
        await issue.handle(job).remove()
        await eventually(lambda: _is_empty(pg))
    assert ran == []


async def _is_sent(pg: Postgres) -> bool:
    return (await pg.outbox.view()).sent == 1


async def test_late_and_on_time_are_told_once(app: Faena, pg: Postgres) -> None:
    issue = _declare(app, [])
    await pg.outbox.publish()
    engine = (await app.runtime()).engine
    async with pg.transaction() as connection:
        await pg.outbox.enqueue(connection, issue, Invoice(1, "a"))
    for _ in range(2):
        await Lag(pg, engine, late_s=0.0).run_once()
    async with pg.transaction() as connection:
        await connection.execute("DELETE FROM faena.outbox")
    for _ in range(2):
        await Lag(pg, engine, late_s=0.0).run_once()
    told = [one async for one in _told(app, 2)]
    assert [(one.name, one.value) for one in told] == [
        ("outbox_late", await pg.outbox.name()),
        ("outbox_on_time", await pg.outbox.name()),
    ]
    assert str(told[0].reason).startswith("1 jobs wait, the oldest for 0 s")
    await engine.command("DEL", SHARD, "events")


async def _told(app: Faena, number: int) -> AsyncIterator[Event]:
    async with aclosing(app.events(since="start")) as events:
        async for event in events:
            yield event
            number -= 1
            if number == 0:
                return


async def test_a_settled_job_takes_no_row_of_another_queue_along(
    app: Faena, pg: Postgres, working: Working
) -> None:
    ran: list[Any] = []
    issue = _declare(app, ran)

    @app.queue("letters").task
    async def send(number: int) -> None: ...

    await pg.outbox.publish()
    async with pg.transaction() as connection:
        await pg.outbox.enqueue(connection, send, 1, id="one", delay="1h")
        await pg.outbox.enqueue(connection, issue, Invoice(1, "a"), id="one")
    async with working(app):
        await eventually(lambda: _has_rows(pg, ["letters"]))
    assert ran == [(1, "one", None)]


async def _has_rows(pg: Postgres, queues: list[str]) -> bool:
    async with pg.transaction() as connection:
        found = await connection.execute("SELECT queue FROM faena.outbox ORDER BY 1")
        return [queue for (queue,) in await found.fetchall()] == queues


async def test_what_the_broker_refuses_for_ever_makes_nothing_late(
    app: Faena, pg: Postgres
) -> None:
    issue = _declare(app, [])
    await pg.outbox.publish()
    async with pg.transaction() as connection:
        await pg.outbox.enqueue(connection, issue, Invoice(1, "a"))
        await connection.execute("UPDATE faena.outbox SET refused = 'no'")
    await Lag(pg, (await app.runtime()).engine, late_s=0.0).run_once()
    async with pg.transaction() as connection:
        found = await connection.execute("SELECT is_late FROM faena.identity")
        assert await found.fetchone() == (False,)


async def test_a_queue_that_gets_an_order_is_published_anew(app: Faena, pg: Postgres) -> None:
    @app.queue("letters", order=Order.KEY).task
    async def send(number: int) -> None: ...

    await pg.outbox.publish()
    async with pg.transaction() as connection:
        await connection.execute("UPDATE faena.tasks SET needs_tenant = false, needs_key = false")
    await pg.outbox.publish()
    for given in ({}, {"tenant": "acme"}):
        with pytest.raises(ArgumentError, match="must be given: queue letters orders"):
            async with pg.transaction() as connection:
                await pg.outbox.enqueue(connection, send, 1, **given)


async def _refill(app: Faena, pg: Postgres) -> Refill:
    engine, name = (await app.runtime()).engine, f"@{await pg.outbox.name()}"
    return Refill(pg, engine, Settlements(pg, engine, name), name)


async def _lost(app: Faena, pg: Postgres, number: int) -> None:
    """Jobs that were sent to a broker which does not know them."""
    issue = _declare(app, [])
    await pg.outbox.publish()
    async with pg.transaction() as connection:
        await pg.outbox.enqueue_many(connection, issue, [Invoice(n, "a") for n in range(number)])
        await connection.execute("UPDATE faena.outbox SET sent_at = now()")


async def test_all_that_was_lost_is_sent_again_however_much_it_is(app: Faena, pg: Postgres) -> None:
    await _lost(app, pg, 1001)
    assert await (await _refill(app, pg)).run_once() == 1001
    assert (await pg.outbox.view()).pending == 1001


async def test_nothing_counts_as_lost_while_shards_move(
    app: Faena, pg: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _lost(app, pg, 1)
    original = refill.in_sight

    async def moving(*args: Any) -> Any:
        return (await original(*args))._replace(is_moving=True)

    with monkeypatch.context() as patched:
        patched.setattr(refill, "in_sight", moving)
        assert await (await _refill(app, pg)).run_once() == 0
    assert (await pg.outbox.view()).pending == 0
    assert await (await _refill(app, pg)).run_once() == 1, "when they have moved"


async def test_a_refill_that_fails_is_begun_again_by_the_next(
    app: Faena, pg: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _lost(app, pg, 1)

    async def fail(*_: Any) -> set[str]:
        raise StoreUnavailable("no", op="refill")

    with monkeypatch.context() as patched:
        patched.setattr(Refill, "_missing", fail)
        with pytest.raises(StoreUnavailable):
            await (await _refill(app, pg)).run_once()
    assert await (await _refill(app, pg)).run_once() == 1


async def test_a_direct_url_of_another_database_relays_nothing_of_it(
    app: Faena, database: str, bare_database: str, working: Working
) -> None:
    ran: list[Any] = []
    issue = _declare(app, ran)
    async with (
        Postgres(app, bare_database, relay=False) as other,
        Postgres(app, database, direct_url=bare_database) as pg,
    ):
        await migrate(other)
        for number, one in enumerate((other, pg)):
            await one.outbox.publish()
            async with one.transaction() as connection:
                await one.outbox.enqueue(connection, issue, Invoice(number, "a"))
        async with working(app):
            await eventually(lambda: bool(ran))
            await eventually(lambda: _is_empty(pg))
        assert [number for number, *_ in ran] == [1]
        assert (await other.outbox.view()).pending == 1


@pytest.mark.parametrize("other", [{}, {"tenant": "b", "key": "k"}, {"tenant": "a", "key": "l"}])
async def test_the_same_id_of_another_tenant_or_key_is_another_job(
    app: Faena, pg: Postgres, other: Any
) -> None:
    issue, invoice = _declare(app, []), Invoice(1, "a")
    await pg.outbox.publish()
    async with pg.transaction() as connection:
        await pg.outbox.enqueue(connection, issue, invoice, id="one", tenant="a", key="k")
    with pytest.raises(ArgumentError, match="id must be new, got one"):
        async with pg.transaction() as connection:
            await pg.outbox.enqueue(connection, issue, invoice, id="one", **other)


async def test_one_relay_works_at_a_time(app: Faena, pg: Postgres, database: str) -> None:
    issue = _declare(app, [])
    await pg.outbox.publish()
    engine, name = (await app.runtime()).engine, f"@{await pg.outbox.name()}"
    relay = OutboxRelay(pg, Settlements(pg, engine, name), name)
    async with pg.transaction() as connection:
        await pg.outbox.enqueue(connection, issue, Invoice(1, "a"))
    async with await pg.connect(database, autocommit=True) as connection:
        async with pg.transaction() as other:
            await other.execute("SELECT * FROM faena.take('[]', 1, 1, '60s')")
            assert await relay.run_once(connection) is None
        assert await relay.run_once(connection) == 1
