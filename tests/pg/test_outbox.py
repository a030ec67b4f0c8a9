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
from faena.errors import ArgumentError, PayloadError
from faena.pg import Postgres
from faena.pg.lag import Lag
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
    assert ":payload" in made.named_sql
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
