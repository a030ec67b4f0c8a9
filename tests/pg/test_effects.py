"""Effects of handlers on the database, once for each job."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import msgspec
import pytest

from faena import Faena, Job, Retry, Snooze
from faena.errors import ConfigError, StoreUnavailable
from faena.job import Spec
from faena.pg import Connection, Postgres, SyncConnection
from faena.pg.effect_upkeep import forget_effects
from tests._support.eventually import eventually
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


async def _inline(task: Any, payload: int, job_id: str = "one") -> Any:
    """The handler with a job of a known origin, as two workers would call it."""
    job = Job("sales", job_id, Spec(task="sell", payload=msgspec.Raw(b"7")), attempt=1)
    job.origin = "one"
    return await task(payload, job)


def test_a_handler_must_take_the_transaction_first(app: Faena, pg: Postgres) -> None:
    async def sell(number: int) -> None: ...

    with pytest.raises(ConfigError, match=r"first, annotated as faena.pg.Connection, got"):
        pg.effect(sell)  # pyright: ignore[reportArgumentType, reportCallIssue]

    def plain(transaction: Connection) -> None: ...

    with pytest.raises(ConfigError, match=r"first, annotated as faena.pg.SyncConnection, got"):
        pg.effect(plain)  # pyright: ignore[reportArgumentType, reportCallIssue]

    async def empty() -> None: ...

    with pytest.raises(ConfigError, match=r"must take the transaction first"):
        pg.effect(empty)  # pyright: ignore[reportArgumentType, reportCallIssue]


async def test_a_plain_function_runs_in_a_thread_with_a_transaction_of_its_own(
    app: Faena, table: Postgres, working: Working
) -> None:
    threads: set[int] = set()

    @app.queue("sales", retry=Retry.fixed("1ms", attempts=3)).task
    @table.effect
    def sell(transaction: SyncConnection, number: int, job: Job) -> dict[str, int]:
        threads.add(threading.get_ident())
        transaction.execute("INSERT INTO sold VALUES (%s)", [number])
        if job.attempt == 1:
            raise ZeroDivisionError
        return {"sold": number}

    @app.queues["sales"].task
    async def confirm(number: int) -> None: ...

    @app.queues["sales"].task
    @table.effect
    def follow(transaction: SyncConnection, number: int) -> None:
        with transaction.cursor() as cursor:
            table.outbox.enqueue_sync(cursor, confirm, number, id="after")

    receipts = [await sell.enqueue(number) for number in range(5)]
    async with working(app):
        for number, receipt in enumerate(receipts):
            assert await receipt.handle.result(timeout="60s") == {"sold": number}
        await receipts[0].handle.rerun()
        assert await receipts[0].handle.result(timeout="60s") == {"sold": 0}
        await (await follow.enqueue(7)).handle.result(timeout="60s")
        await eventually(confirm.handle("after").view)  # the relay has sent it
        await confirm.handle("after").result(timeout="60s")
    assert await _rows(table, "SELECT number FROM sold ORDER BY 1") == [(n,) for n in range(5)]
    assert len(await _rows(table, "SELECT * FROM faena.effects")) == 6
    assert threading.get_ident() not in threads


async def test_a_plain_function_without_a_server_is_told_so(app: Faena) -> None:
    url = "postgresql://postgres@127.0.0.1:1/shop"
    async with Postgres(app, url, patience="200ms", relay=False) as pg:

        def use() -> None:
            with pg.transaction_sync():
                pass

        with pytest.raises(StoreUnavailable, match="PostgreSQL cannot be reached"):
            await asyncio.to_thread(use)


async def _age(pg: Postgres) -> None:
    await _rows(
        pg,
        "INSERT INTO faena.effects (queue, job, attempt, committed_at) "
        "SELECT 'q', n::text, 1, now() - n * interval '1 day' FROM generate_series(1, 60) n"
        " RETURNING 1",
    )


async def test_old_records_are_deleted(pg: Postgres) -> None:
    await _age(pg)
    assert await forget_effects(pg) == 31
    assert await forget_effects(pg) == 0


async def test_workers_delete_old_records_by_themselves(
    app: Faena, database: str, working: Working
) -> None:
    @app.queue("sales").task
    async def sell(number: int) -> None: ...

    async with Postgres(app, database, keep_effects="10d") as pg:
        await _age(pg)
        async with working(app):
            await eventually(lambda: _is_left(pg, 9))


async def _is_left(pg: Postgres, number: int) -> bool:
    return len(await _rows(pg, "SELECT * FROM faena.effects")) == number


def test_records_are_kept_for_an_hour_at_least(app: Faena) -> None:
    with pytest.raises(ConfigError, match="keep_effects must be a duration from 1h to"):
        Postgres(app, "postgresql://postgres@/x", keep_effects="59m")


async def test_old_records_are_deleted_however_many_there_are(pg: Postgres) -> None:
    await _rows(
        pg,
        "INSERT INTO faena.effects (queue, job, attempt, committed_at) "
        "SELECT 'q', n::text, 1, now() - interval '31 days' FROM generate_series(1, 2500) n"
        " RETURNING 1",
    )
    assert await forget_effects(pg) == 2500


@pytest.mark.parametrize("is_plain", [False, True])
async def test_a_job_that_is_tried_again_as_a_new_one_finds_the_record(
    app: Faena, table: Postgres, is_plain: bool
) -> None:
    calls: list[int] = []

    @table.effect
    async def sell(transaction: Connection, number: int, job: Job) -> str:
        calls.append(number)
        return job.id

    @table.effect
    def sell_plainly(transaction: SyncConnection, number: int, job: Job) -> str:
        calls.append(number)
        return job.id

    async def in_thread(payload: int, job: Job) -> str:
        return await asyncio.to_thread(sell_plainly, payload, job)

    task = in_thread if is_plain else sell
    assert await _inline(task, 7) == "one"
    assert await _inline(task, 7, job_id="two") == "one", "what the first has returned"
    assert calls == [7]
