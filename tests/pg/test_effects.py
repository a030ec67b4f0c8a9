"""Effects of handlers on the database, once for each job."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from faena import Faena, Job, Retry, Snooze
from faena.errors import ConfigError
from faena.job import Spec
from faena.pg import Connection, Postgres
from faena.pg.effect import forget_effects
from tests._support.working import Working


@pytest.fixture
async def table(pg: Postgres) -> Postgres:
    async with pg.transaction() as connection:
        await connection.execute("CREATE TABLE sold (number int)")
    return pg


async def _rows(pg: Postgres, words: str) -> list[tuple[Any, ...]]:
    async with pg.transaction() as connection:
        found = await connection.execute(words.encode())
        return await found.fetchall()


async def test_the_effect_and_the_record_commit_together(
    app: Faena, table: Postgres, working: Working
) -> None:
    @app.queue("sales").task
    @table.effect
    async def sell(transaction: Connection, number: int) -> dict[str, int]:
        await transaction.execute("INSERT INTO sold VALUES (%s)", [number])
        return {"sold": number}

    receipt = await sell.enqueue(7)
    async with working(app):
        assert await receipt.handle.result(timeout="60s") == {"sold": 7}
    assert await _rows(table, "SELECT number FROM sold") == [(7,)]
    assert await _rows(table, "SELECT queue, job, result FROM faena.effects") == [
        ("sales", receipt.id, b'{"sold":7}')
    ]


async def test_a_second_delivery_is_answered_from_the_record(
    app: Faena, table: Postgres, working: Working
) -> None:
    calls: list[int] = []

    @app.queue("sales").task
    @table.effect
    async def sell(transaction: Connection, number: int, job: Job) -> str:
        calls.append(number)
        await transaction.execute("INSERT INTO sold VALUES (%s)", [number])
        return f"{number} in attempt {job.attempt}"

    receipt = await sell.enqueue(7)
    async with working(app):
        first = await receipt.handle.result(timeout="60s")
        await receipt.handle.rerun()
        assert await receipt.handle.result(timeout="60s") == first
    assert calls == [7]
    assert await _rows(table, "SELECT number FROM sold") == [(7,)]


async def test_what_fails_leaves_neither_effect_nor_record(
    app: Faena, table: Postgres, working: Working
) -> None:
    tries: list[int] = []

    @app.queue("sales", retry=Retry.fixed("1ms", attempts=3)).task
    @table.effect
    async def sell(transaction: Connection, number: int) -> None:
        await transaction.execute("INSERT INTO sold VALUES (%s)", [number])
        tries.append(number)
        if len(tries) == 1:
            raise ZeroDivisionError
        if len(tries) == 2:
            raise Snooze("1ms")

    receipt = await sell.enqueue(7)
    async with working(app):
        await receipt.handle.result(timeout="60s")
    assert len(tries) == 3
    assert await _rows(table, "SELECT number FROM sold") == [(7,)]
    assert await _rows(table, "SELECT result FROM faena.effects") == [(None,)]


async def test_a_delivery_waits_for_another_that_is_under_way(app: Faena, table: Postgres) -> None:
    entered, leave, calls = asyncio.Event(), asyncio.Event(), []

    @app.queue("sales").task
    @table.effect
    async def sell(transaction: Connection, number: int, job: Job) -> int:
        calls.append(number)
        entered.set()
        await leave.wait()
        return number

    first = asyncio.create_task(_inline(sell, 7))
    await entered.wait()
    second = asyncio.create_task(_inline(sell, 7))
    leave.set()
    assert await first == await second == 7
    assert calls == [7]


async def _inline(task: Any, payload: int) -> Any:
    """The handler with a job of a known id, as two workers would call it."""
    job = Job("sales", "one", Spec(task="sell", payload=msgspec.Raw(b"7")), attempt=1)
    job.origin = "one"
    return await task(payload, job)


def test_a_handler_must_take_the_transaction_first(app: Faena, pg: Postgres) -> None:
    async def sell(number: int) -> None: ...

    with pytest.raises(ConfigError, match="must take the transaction first"):
        pg.effect(sell)  # pyright: ignore[reportArgumentType]

    def plain(transaction: Connection) -> None: ...

    with pytest.raises(ConfigError, match="must be an async def"):
        pg.effect(plain)  # pyright: ignore[reportArgumentType]


async def test_old_records_are_deleted(pg: Postgres) -> None:
    async with pg.transaction() as connection:
        await connection.execute(
            "INSERT INTO faena.effects (queue, job, attempt, committed_at) "
            "SELECT 'q', n::text, 1, now() - n * interval '1 day' FROM generate_series(1, 60) n"
        )
    assert await forget_effects(pg) == 31
    assert await forget_effects(pg) == 0
