"""Many jobs by one statement, and payloads as they were written."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from faena import Faena, Job
from faena.errors import ArgumentError, ConfigError, PayloadError
from faena.pg import Postgres
from faena.task import Task
from tests._support.eventually import eventually
from tests._support.working import Working


@dataclass
class Parcel:
    number: int
    weight: float = 1.0


def _declare(app: Faena, ran: list[Any]) -> Task[Parcel, None]:
    @app.queue("parcels", order="tenant").task
    async def send(parcel: Parcel, job: Job) -> None:
        ran.append((parcel.number, job.id))

    return send


async def _rows(pg: Postgres) -> list[tuple[Any, ...]]:
    async with pg.transaction() as connection:
        found = await connection.execute(
            "SELECT id, payload::text, options FROM faena.outbox ORDER BY number"
        )
        return await found.fetchall()


async def test_many_jobs_run_in_the_order_of_their_list(
    app: Faena, pg: Postgres, working: Working
) -> None:
    ran: list[Any] = []
    send = _declare(app, ran)
    await pg.outbox.publish()
    async with pg.transaction() as connection:
        parcels = [Parcel(number) for number in range(250)]
        ids = await pg.outbox.enqueue_many(connection, send, parcels, tenant="acme")
    async with working(app):
        await eventually(lambda: len(ran) == 250)
    assert ran == list(enumerate(ids))


async def test_one_bad_item_and_nothing_is_written(app: Faena, pg: Postgres) -> None:
    send = _declare(app, [])
    await pg.outbox.publish()
    wrong: Any = [Parcel(1), {"number": "two"}]
    with pytest.raises(PayloadError, match=r"item 1 of the list: .*number expected int, got str"):
        async with pg.transaction() as connection:
            await pg.outbox.enqueue_many(connection, send, wrong, tenant="acme")
    call = "faena.enqueue_many('parcels', 'send', '[{\"number\": 1}, {}]', tenant => 'a')"
    with pytest.raises(ArgumentError, match=r"item 1 of the list: .* number is required"):
        async with pg.transaction() as connection:
            await connection.execute(f"SELECT {call}".encode())
    assert await _rows(pg) == []


async def test_an_item_that_is_too_large_is_refused_though_it_is_of_the_right_type(
    app: Faena, pg: Postgres
) -> None:
    @app.queue("texts", payload_limit=100).task
    async def keep(text: str) -> None: ...

    await pg.outbox.publish()
    call = "faena.enqueue_many('texts', 'keep', jsonb_build_array('x', repeat('x', {})))"
    async with pg.transaction() as connection:  # with its quotes it has 100 bytes
        await connection.execute(f"SELECT {call.format(98)}".encode())
    words = "item 1 of the list: payload must have at most 100 bytes, got 101"
    with pytest.raises(ArgumentError, match=words):
        async with pg.transaction() as connection:
            await connection.execute(f"SELECT {call.format(99)}".encode())
    assert len(await _rows(pg)) == 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("'parcels', 'send', '{}', tenant => 'a'", r"payloads must be a JSON array.*, got object"),
        ("'parcels', 'send', NULL, tenant => 'a'", r"payloads must be a JSON array.*, got NULL"),
        ("'parcels', 'sent', '[]', tenant => 'a'", r"declared, got parcels/sent"),
        ("'parcels', 'send', '[]'", r"tenant must be given"),
        ("'parcels', 'send', '[]', tenant => 'a', priority => 101", r"priority must be 1 to 100"),
        ("'parcels', 'send', '[]', tenant => 'a', delay => '-1s'", r"delay must not be negative"),
        ("'parcels', 'send', '[]', tenant => 'a', at => 'infinity'", r"at must be before the year"),
    ],
)
async def test_bad_calls_for_many_are_refused(
    app: Faena, pg: Postgres, call: str, words: str
) -> None:
    _declare(app, [])
    await pg.outbox.publish()
    with pytest.raises(ArgumentError, match=words):
        async with pg.transaction() as connection:
            await connection.execute(f"SELECT faena.enqueue_many({call})".encode())


async def test_cursors_without_event_loop_take_many(
    app: Faena, pg: Postgres, database: str
) -> None:
    send = _declare(app, [])
    await pg.outbox.publish()

    def produce() -> list[str]:
        with psycopg.connect(database) as connection, connection.cursor() as cursor:
            parcels = [Parcel(1), Parcel(2)]
            return pg.outbox.enqueue_many_sync(cursor, send, parcels, tenant="a", priority=7)

    ids = await asyncio.to_thread(produce)
    rows = await _rows(pg)
    assert [row[0] for row in rows] == ids
    assert [row[2] for row in rows] == [{"priority": 7}] * 2


@pytest.mark.filterwarnings("error")
async def test_a_connection_of_the_other_kind_is_refused(app: Faena, pg: Postgres) -> None:
    send, parcels = _declare(app, []), [Parcel(1)]
    async with pg.transaction() as connection:
        for wrong in (connection, connection.cursor(), None, "x"):
            given: Any = wrong
            with pytest.raises(ArgumentError, match="cursor must be one without event loop"):
                pg.outbox.enqueue_sync(given, send, parcels[0], tenant="a")
            with pytest.raises(ArgumentError, match="cursor must be one without event loop"):
                pg.outbox.enqueue_many_sync(given, send, parcels, tenant="a")
    with pg.transaction_sync() as other:
        for wrong in (other, other.cursor(), None):
            given = wrong
            with pytest.raises(ArgumentError, match="connection must be an async one of psycopg"):
                await pg.outbox.enqueue(given, send, parcels[0], tenant="a")
            with pytest.raises(ArgumentError, match="connection must be an async one of psycopg"):
                await pg.outbox.enqueue_many(given, send, parcels, tenant="a")


async def test_ids_and_unknown_options_are_refused_for_lists(app: Faena, pg: Postgres) -> None:
    send = _declare(app, [])
    with pytest.raises(ArgumentError, match="id must be given for each job"):
        pg.outbox.statement_many(send, [Parcel(1)], tenant="a", id="one")
    with pytest.raises(ConfigError, match="outbox option must be a known name, got 'timeout'"):
        pg.outbox.statement(send, Parcel(1), tenant="a", timeout="5s")  # pyright: ignore[reportCallIssue]


async def test_a_payload_comes_back_byte_for_byte(
    app: Faena, pg: Postgres, working: Working
) -> None:
    given = {
        "zz": [1, 1.0, -0.0, 1e22, 1e-7, 12345678901234567890, -(2**63), 0.1 + 0.2],
        "a": {"ñ": "€\t\u007f \U0001f600", "": None, "b": [], "aa": {}},
    }
    seen: list[Any] = []

    @app.queue("any").task
    async def look(payload: Any) -> None:
        seen.append(payload)

    await pg.outbox.publish()
    async with pg.transaction() as connection:
        await pg.outbox.enqueue(connection, look, given)
        await pg.outbox.enqueue_many(connection, look, [given])
    assert [row[1].encode() for row in await _rows(pg)] == [look.encode(given)] * 2
    async with working(app):
        await eventually(lambda: len(seen) == 2)
    assert [repr(one) for one in seen] == [repr(given)] * 2


async def test_numbers_of_plain_sql_lose_no_digit(app: Faena, pg: Postgres) -> None:
    @app.queue("any").task
    async def look(payload: Any) -> None: ...

    await pg.outbox.publish()
    text = "[12345678901234567890, 1.0, 1, 0.10, 123456789012345678901234567890.5]"
    async with pg.transaction() as connection:
        await connection.execute(f"SELECT faena.enqueue('any', 'look', '{text}')".encode())
    assert (await _rows(pg))[0][1] == text


async def test_the_relay_reads_few_of_many_kept_rows(app: Faena, pg: Postgres) -> None:
    """With 20,000 rows that wait for their settlement, 100 pending ones cost what they are."""
    _declare(app, [])
    await pg.outbox.publish()
    async with pg.transaction() as connection:
        await connection.execute(
            "INSERT INTO faena.outbox (queue, id, task, payload, options, is_kept, sent_at) "
            "SELECT 'parcels', n::text, 'send', '{}', '{}', true, "
            "CASE WHEN n <= 20000 THEN now() END FROM generate_series(1, 20100) n"
        )
    take = """faena.take('[["other", null], ["parcels", ["send"]]]', 1000, 1000000, '1s')"""
    blocks: list[int] = []
    async with pg.transaction() as connection:
        for _ in range(2):
            found = await connection.execute(
                f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM {take}".encode()
            )
            row = await found.fetchone()
            assert row is not None
            plan = row[0][0]["Plan"]
            assert plan["Actual Rows"] == 100
            blocks.append(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
    assert blocks[1] < 250  # the table has 300 and more, the index of all rows as many again
