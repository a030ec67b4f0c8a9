"""A call that is cancelled, or limited, ends soon, though the server no longer listens."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import psycopg
import pytest

from faena import Faena
from faena.pg import Postgres, pool
from faena.pg.pool import PromptConnection, ReadConnection, conninfo, limited
from tests._support.eventually import PATIENCE_S, eventually
from tests._support.forked import Forked


@pytest.fixture(params=[PromptConnection, ReadConnection])
async def connection(request: pytest.FixtureRequest, database: str) -> Any:
    made = await request.param.connect(conninfo(database))
    yield made
    await made.close()


async def _cancelled(connection: PromptConnection) -> None:
    """Begin a statement that never ends, and cancel it."""
    running = asyncio.create_task(connection.execute("SELECT pg_sleep(600)"))
    with psycopg.connect(connection.info.dsn, autocommit=True) as other:
        await eventually(lambda: _is_running(other, connection.info.backend_pid))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, PATIENCE_S)


def _is_running(other: psycopg.Connection[Any], pid: int) -> bool:
    """Whether the server has begun: it forgets who asked it to end a statement before that."""
    words = "SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = %s"
    return other.execute(words, [pid]).fetchone() == (True,)


async def test_a_server_that_listens_is_asked_to_end_the_statement(
    connection: PromptConnection,
) -> None:
    await _cancelled(connection)
    await connection.rollback()
    await connection.execute("SELECT 1")


async def test_one_that_does_not_is_given_up(
    connection: PromptConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    severed: list[object] = []

    async def refuse(_self: object, *, timeout: float = 30.0) -> None:
        asked.append(timeout)
        raise psycopg.OperationalError("no answer")

    def sever(one: Any) -> None:
        severed.append(one)
        original(one)

    original = pool.sever
    monkeypatch.setattr(pool, "sever", sever)
    monkeypatch.setattr(PromptConnection, "cancel_safe", refuse)
    await _cancelled(connection)
    assert severed == [connection]
    assert asked == [1.0], "seconds"
    assert connection.closed


def end_while_connecting() -> None:
    """A program that does not close its pool, whose server takes connections and is silent."""

    async def work() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            url = f"postgresql://postgres@127.0.0.1:{listener.getsockname()[1]}/silent"
            pg = Postgres(Faena("silent"), url, relay=False)
            asking = asyncio.create_task(pg.transaction().__aenter__())
            await asyncio.get_running_loop().sock_accept(listener)
            assert not asking.done()

    asyncio.run(work())


def test_a_program_ends_while_its_pool_connects(tmp_path: Path) -> None:
    process = Forked(end_while_connecting, log=tmp_path / "log")
    try:
        assert process.wait(PATIENCE_S) == 0, (tmp_path / "log").read_text()
    finally:
        process.kill()


async def test_all_that_postgres_hands_out_is_prompt(pg: Postgres) -> None:
    async with pg.transaction() as lent, pg.session() as session, pg.reading() as reading:
        assert [isinstance(one, PromptConnection) for one in (lent, session, reading)] == [True] * 3


async def test_a_block_that_takes_too_long_loses_its_connection(
    connection: PromptConnection,
) -> None:
    with limited(connection, 0.01), pytest.raises(psycopg.OperationalError):
        await asyncio.wait_for(connection.execute("SELECT pg_sleep(600)"), PATIENCE_S)
    assert connection.closed


async def test_a_connection_is_not_limited_after_its_block(connection: PromptConnection) -> None:
    """It is the pool's then, and soon another block's."""
    later = asyncio.Event()
    with limited(connection, 0.01):
        asyncio.get_running_loop().call_later(0.02, later.set)
    await asyncio.wait_for(later.wait(), PATIENCE_S)
    await connection.execute("SELECT 1")
