"""Effects that a handler, or a job with the same id, would otherwise lose or double."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import psycopg
import pytest

from faena import Faena, Job, Retry
from faena.errors import ConfigError, JobFailed, StoreRejected
from faena.job import Spec
from faena.pg import Connection, Postgres, SyncConnection
from faena.pg.effect_upkeep import forget_effects
from tests._support.working import Working


@pytest.fixture
async def table(pg: Postgres) -> Postgres:
    async with pg.transaction() as connection:
        await connection.execute("CREATE TABLE sold (number int PRIMARY KEY)")
    return pg


async def _rows(pg: Postgres, words: str) -> list[tuple[Any, ...]]:
    async with pg.transaction() as connection:
        found = await connection.execute(words.encode())
        return await found.fetchall()


def _job(payload: bytes = b"1", tenant: str | None = None) -> Job:
    return Job("sales", "one", Spec(task="sell", payload=msgspec.Raw(payload), tenant=tenant))


async def _swallow(transaction: Connection) -> None:
    try:
        await transaction.execute("SELECT 1 / 0")
    except psycopg.Error:
        return


async def _lose(transaction: Connection) -> None:
    transaction.pgconn.finish()
    try:
        await transaction.execute("SELECT 1")
    except psycopg.Error:
        return


async def _commit_and_begin(transaction: Connection) -> None:
    await transaction.execute("ROLLBACK")
    await transaction.execute("BEGIN")


async def _raise_rollback(_transaction: Connection) -> None:
    raise psycopg.Rollback


ENDINGS = {
    "swallowed": (_swallow, "in which a statement has failed"),
    "lost": (_lose, "got a lost connection"),
    "sql": (lambda one: one.execute("ROLLBACK"), "got one that was ended"),
    "another": (_commit_and_begin, "got another: it must not commit or roll back by itself"),
    "raised": (_raise_rollback, "got one that was rolled back"),
}


@pytest.mark.parametrize("name", ENDINGS)
@pytest.mark.parametrize("value", [None, 7])
async def test_an_attempt_whose_transaction_cannot_commit_fails(
    app: Faena, table: Postgres, name: str, value: int | None
) -> None:
    end, words = ENDINGS[name]

    @app.queue("sales").task
    @table.effect
    async def sell(transaction: Connection, number: int) -> int | None:
        await transaction.execute("INSERT INTO sold VALUES (%s)", [number])
        if is_bad:
            await end(transaction)
        return value

    is_bad = True
    with pytest.raises(StoreRejected, match=words):
        await sell(1, _job())
    assert await _rows(table, "SELECT number FROM sold") == []
    is_bad = False
    assert await sell(1, _job()) == value
    assert await _rows(table, "SELECT number FROM sold") == [(1,)]


async def test_a_plain_function_is_checked_in_the_same_way(app: Faena, table: Postgres) -> None:
    @app.queue("sales").task
    @table.effect
    def sell(transaction: SyncConnection, number: int) -> None:
        transaction.execute("INSERT INTO sold VALUES (%s)", [number])
        try:
            transaction.execute("SELECT 1 / 0")
        except psycopg.Error:
            return

    with pytest.raises(StoreRejected, match="in which a statement has failed"):
        await asyncio.to_thread(sell, 1, _job())
    assert await _rows(table, "SELECT number FROM sold") == []


@pytest.mark.parametrize("word", ["commit", "rollback"])
async def test_a_handler_cannot_end_its_transaction(app: Faena, table: Postgres, word: str) -> None:
    @app.queue("sales").task
    @table.effect
    async def sell(transaction: Connection, number: int) -> None:
        await transaction.execute("INSERT INTO sold VALUES (%s)", [number])
        await getattr(transaction, word)()

    with pytest.raises(psycopg.ProgrammingError, match=f"Explicit {word}"):
        await sell(1, _job())
    assert await _rows(table, "SELECT number FROM sold") == []


def test_decorators_in_the_other_order_or_with_parentheses_are_told(
    app: Faena, table: Postgres
) -> None:
    with pytest.raises(ConfigError, match=r"must be written below @queue\.task, got task sell"):

        @table.effect  # pyright: ignore[reportArgumentType, reportUntypedFunctionDecorator]
        @app.queue("sales").task
        async def sell(number: int) -> None: ...

    with pytest.raises(ConfigError, match="must be written without parentheses"):
        table.effect()  # pyright: ignore[reportCallIssue]


async def test_a_handler_gets_errors_of_its_statements_as_the_driver_raises_them(
    app: Faena, table: Postgres
) -> None:
    @app.queue("sales").task
    @table.effect
    async def sell(transaction: Connection, number: int) -> str:
        try:
            async with transaction.transaction():
                await transaction.execute("SELECT 1 / 0")
        except psycopg.errors.DivisionByZero:
            await transaction.execute("SELECT * FROM nothing")
        return "never"

    with pytest.raises(psycopg.errors.UndefinedTable):
        await sell(1, _job())


async def test_an_effect_that_its_handler_has_committed_in_part_is_not_taken_for_done(
    app: Faena, table: Postgres, working: Working
) -> None:
    @app.queue("sales", retry=Retry.fixed("1ms", attempts=3)).task
    @table.effect
    async def sell(transaction: Connection, number: int) -> int:
        await transaction.execute("INSERT INTO sold VALUES (%s)", [number])
        await transaction.execute("COMMIT")
        raise ZeroDivisionError

    receipt = await sell.enqueue(1)
    async with working(app):
        with pytest.raises(JobFailed, match="must be whole, got one whose handler has committed"):
            await receipt.handle.result(timeout="60s")
    assert await _rows(table, "SELECT number FROM sold") == [(1,)]


async def test_what_may_fail_may_be_caught_around_a_savepoint(app: Faena, table: Postgres) -> None:
    @app.queue("sales").task
    @table.effect
    async def sell(transaction: Connection, number: int) -> None:
        await transaction.execute("INSERT INTO sold VALUES (%s)", [number])
        try:
            async with transaction.transaction():
                await transaction.execute("INSERT INTO sold VALUES (%s)", [number])
        except psycopg.errors.UniqueViolation:
            return

    await sell(1, _job())
    assert await _rows(table, "SELECT number FROM sold") == [(1,)]


async def test_tenants_namespaces_and_payloads_with_one_id_have_effects_of_their_own(
    app: Faena, table: Postgres, database: str
) -> None:
    async def sell(_transaction: Connection, number: int, job: Job) -> str:
        calls.append(number)
        return f"{number} of {job.tenant}"

    calls: list[int] = []
    one = app.queue("sales").task(table.effect(sell))
    assert await one(1, _job(b"1", "ana")) == await one(1, _job(b"1", "ana")) == "1 of ana"
    assert await one(2, _job(b"2", "ana")) == "2 of ana"
    assert await one(1, _job(b"1", "eva")) == "1 of eva"
    async with Postgres(Faena("other"), database, relay=False) as pg:
        two = pg.app.queue("sales").task(pg.effect(sell))
        assert await two(3, _job(b"1", "ana")) == "3 of ana"
    assert calls == [1, 2, 1, 3]
    for namespace, tenant in (("faena", "north"), ("faenan", "orth")):  # the same letters
        async with Postgres(Faena("shop", namespace=namespace), database, relay=False) as pg:
            own = pg.app.queue("sales").task(pg.effect(sell))
            assert await own(4, _job(b"1", tenant)) == f"4 of {tenant}"
    assert calls == [1, 2, 1, 3, 4, 4]
    assert await forget_effects(table) == 0


async def test_a_record_of_an_earlier_release_is_found(app: Faena, table: Postgres) -> None:
    await _rows(
        table,
        "INSERT INTO faena.effects (queue, job, attempt, tenant, result) "
        "VALUES ('sales', 'one', 1, 'ana', '5') RETURNING 1",
    )

    @app.queue("sales").task
    @table.effect
    async def sell(_transaction: Connection, number: int) -> int:
        return number

    assert await sell(1, _job(b"1", "ana")) == 5
    assert await sell(1, _job(b"1", "eva")) == 1
    assert await sell(9, _job(b"1", "eva")) == 1, "of its own record, not of the other tenant's"
