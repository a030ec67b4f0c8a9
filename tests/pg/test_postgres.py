"""Where an app's PostgreSQL is, and what its connections promise."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, LiteralString, cast

import psycopg
import pytest
from psycopg import errors as pg_errors

from faena import Faena
from faena.embedded.directory import DataDirectory
from faena.errors import ArgumentError, ConfigError, StoreRejected, StoreUnavailable
from faena.pg import Postgres
from faena.pg.embedded import EmbeddedPostgres
from faena.pg.failure import as_raised, is_unreachable, translated
from tests._support import guard
from tests._support.eventually import PATIENCE_S, eventually
from tests._support.valkey import free_port


async def test_a_transaction_commits_at_the_end_and_rolls_back_on_an_error(pg: Postgres) -> None:
    async with pg.transaction() as connection:
        await connection.execute("CREATE TABLE kept (number int)")

    async def fail() -> None:
        async with pg.transaction() as connection:
            await connection.execute("INSERT INTO kept VALUES (1)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    async with pg.transaction() as connection:
        found = await connection.execute("SELECT count(*) FROM kept")
        assert await found.fetchone() == (0,)


async def test_an_absent_server_is_told_as_such(app: Faena) -> None:
    url = f"postgresql://postgres@127.0.0.1:{free_port()}/shop"
    async with Postgres(app, url, patience="500ms") as pg:
        with pytest.raises(StoreUnavailable, match="PostgreSQL cannot be reached"):
            async with pg.transaction():
                pass


async def _run(pg: Postgres, words: LiteralString) -> None:
    async with pg.transaction() as connection:
        await connection.execute(words)


async def test_errors_of_a_users_statements_are_those_of_the_driver(pg: Postgres) -> None:
    await _run(pg, "CREATE TABLE kept (number int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)")
    with pytest.raises(pg_errors.UniqueViolation):  # at the commit
        await _run(pg, "INSERT INTO kept VALUES (1), (1)")
    with pytest.raises(pg_errors.UndefinedTable, match='"nothing" does not exist'):
        await _run(pg, "SELECT * FROM nothing")
    for table in ("faena_notes", "my_faena.notes"):  # of the program, whatever it is called
        with pytest.raises(pg_errors.UndefinedTable):
            await _run(pg, cast("LiteralString", f"SELECT * FROM {table}"))
    with pytest.raises(pg_errors.RaiseException):
        await _run(pg, "DO $$ BEGIN RAISE 'of a trigger' ; END $$")
    with pytest.raises(pg_errors.QueryCanceled):
        await _run(pg, "SET LOCAL statement_timeout TO '1ms'; SELECT pg_sleep(60)")
    with pytest.raises(pg_errors.DivisionByZero):
        async with pg.reading() as connection:
            await connection.execute("SELECT 1 / 0")

    def in_a_thread() -> None:
        with pg.transaction_sync() as connection:
            connection.execute("INSERT INTO kept VALUES (2), (2)")

    with pytest.raises(pg_errors.UniqueViolation):
        await asyncio.to_thread(in_a_thread)


async def test_a_connection_that_is_lost_in_a_block_is_no_error_of_its_statements(
    pg: Postgres, database: str
) -> None:
    async def lose() -> None:
        async with pg.transaction() as connection:
            found = await connection.execute("SELECT pg_backend_pid()")
            _end(database, (await found.fetchone() or (0,))[0])
            await connection.execute("SELECT 1")

    with pytest.raises(StoreUnavailable, match="PostgreSQL cannot be reached") as caught:
        await lose()
    assert isinstance(caught.value.__cause__, psycopg.OperationalError)


@pytest.mark.parametrize("op", [None, "archive"])
async def test_a_session_that_was_idle_for_too_long_is_a_lost_connection(
    pg: Postgres, database: str, op: str | None
) -> None:
    """As of a process that was frozen. The driver may read the end of the connection first, or the
    server's words, for which it has another class."""

    async def idle() -> None:
        async with pg.transaction(op) as connection:
            words = "SELECT set_config('idle_in_transaction_session_timeout', '1ms', true)"
            await connection.execute(words)
            await eventually(lambda: _is_over(database, connection.info.backend_pid))
            await connection.execute("SELECT 1")

    with pytest.raises(StoreUnavailable, match="PostgreSQL cannot be reached"):
        await idle()
    for told in (translated("archive"), as_raised("transaction")):
        with pytest.raises(StoreUnavailable, match="cannot be reached: idle") as caught, told:
            raise pg_errors.IdleInTransactionSessionTimeout("idle for too long")
        assert not is_unreachable(caught.value), "other work may go on"


def _is_over(database: str, pid: int) -> bool:
    with psycopg.connect(database) as connection:
        found = connection.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [pid])
        return found.fetchone() is None


async def test_only_what_the_schema_faena_lacks_needs_a_migration(
    app: Faena, bare_database: str
) -> None:
    async with Postgres(app, bare_database) as pg:
        for words in ("SELECT faena.enqueue('a', 'b', '1')", "SELECT * FROM faena.outbox"):
            with pytest.raises(StoreRejected, match="run `faena pg migrate` first"):
                await _run(pg, words)
        with pytest.raises(StoreRejected, match=r'"nothing" does not exist$'):
            async with pg.transaction("archive") as connection:
                await connection.execute("SELECT * FROM nothing")


@pytest.mark.parametrize("steps", range(8))
async def test_who_is_cancelled_while_a_connection_comes_is_cancelled(
    app: Faena, database: str, steps: int
) -> None:
    """The pool hands over the connection at one of these steps of the loop."""
    async with Postgres(app, database, pool=1, relay=False) as pg:
        for _ in range(3):
            async with pg.transaction():
                waiting = asyncio.create_task(_hold(pg))
                await eventually(lambda: _is_awaited(pg))
            for _ in range(steps):
                await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(waiting, PATIENCE_S)


async def _hold(pg: Postgres) -> None:
    async with pg.transaction():
        await asyncio.Event().wait()


async def _is_awaited(pg: Postgres) -> bool:
    return (await pg._pools.here(await pg.url())).get_stats().get("requests_waiting", 0) > 0


def test_the_app_must_be_one() -> None:
    with pytest.raises(ConfigError, match="app must be a Faena, got 'x'"):
        Postgres("x")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("url", ["redis://x", "", 7, "shop"])
def test_a_url_of_something_else_is_refused(app: Faena, url: object) -> None:
    with pytest.raises(ConfigError, match="url must be a URL such as postgresql://"):
        Postgres(app, url)  # pyright: ignore[reportArgumentType]


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Not in pytest's own folder: each pytest that starts closes that to other users, and root's
    PostgreSQL runs as one."""
    for name in ("FAENA_PG_URL", "FAENA_URL", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    return Path(tempfile.mkdtemp(prefix="home-", dir=guard.begin()))


async def test_without_a_url_it_has_a_server_of_its_own(home: Path) -> None:
    app = Faena("shop", directory=home / ".faena")
    async with Postgres(app) as pg, pg.transaction() as connection:
        found = await connection.execute("SELECT current_setting('listen_addresses')")
        assert await found.fetchone() == ("",)
    assert not (home / ".faena" / "postgres" / "postmaster.pid").exists()


_USER = """
import sys, time
from pathlib import Path
from faena.pg.embedded import EmbeddedPostgres
EmbeddedPostgres(Path(sys.argv[1])).join()
print("joined", flush=True)
time.sleep(600)
"""


def test_a_process_that_was_killed_does_not_keep_the_server_running(home: Path) -> None:
    directory = home / ".faena" / "postgres"
    server = EmbeddedPostgres(directory)
    server.join()
    try:
        with subprocess.Popen(
            [sys.executable, "-c", _USER, str(directory)], stdout=subprocess.PIPE
        ) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"joined\n"
            other.kill()
    finally:
        server.leave()
    assert not (directory / "postmaster.pid").exists()


_ANOTHER = """
import os
from faena.pg.embedded import _is_alive
if os.geteuid() == 0:
    os.setuid(65_534)
assert _is_alive(1)
"""


def test_a_process_of_another_user_counts_as_alive() -> None:
    subprocess.run([sys.executable, "-c", _ANOTHER], check=True)


def _end(database: str, number: int) -> None:
    with psycopg.connect(database) as connection:
        found = connection.execute("SELECT pg_terminate_backend(%s, 60000)", [number])
        assert found.fetchone() == (True,)


async def test_no_connection_is_handed_out_that_the_server_has_closed(
    pg: Postgres, database: str
) -> None:
    async def number() -> int:
        async with pg.transaction() as connection:
            found = await connection.execute("SELECT pg_backend_pid()")
            return (await found.fetchone() or (0,))[0]

    closed = await number()
    _end(database, closed)
    assert await number() != closed


async def test_no_thread_gets_a_connection_that_the_server_has_closed(
    pg: Postgres, database: str
) -> None:
    def number() -> int:
        with pg.transaction_sync() as connection:
            return (connection.execute("SELECT pg_backend_pid()").fetchone() or (0,))[0]

    closed = await asyncio.to_thread(number)
    _end(database, closed)
    assert await asyncio.to_thread(number) != closed


async def test_after_it_was_closed_it_connects_again(pg: Postgres) -> None:
    def ask() -> None:
        with pg.transaction_sync() as connection:
            connection.execute("SELECT 1")

    for _ in range(2):
        await _run(pg, "SELECT 1")
        await asyncio.to_thread(ask)
        await pg.close()


async def test_both_embedded_servers_share_a_directory_whichever_starts_first(home: Path) -> None:
    """As root, PostgreSQL runs as another user, and must keep its way to its files."""
    directory = home / ".faena"
    async with Faena("shop", directory=directory) as app, Postgres(app) as pg:
        await _ask(pg)
        await app.health()
        DataDirectory(directory).prepare()  # as another program that joins the Valkey
        async with pg.autocommit() as connection:  # a new process of the server
            await connection.execute("CHECKPOINT")


async def test_threads_that_need_the_embedded_server_at_once_start_it_once(home: Path) -> None:
    app = Faena("shop", directory=home / ".faena")
    async with Postgres(app) as one, Postgres(app) as other:
        urls = await asyncio.gather(one.url(), other.url(), one.url())
        assert len({*urls}) == 1
        await _ask(other)


async def test_a_server_that_could_not_start_is_started_again(home: Path) -> None:
    directory = home / ".faena"
    async with Postgres(Faena("shop", directory=directory)) as pg:
        DataDirectory(directory).prepare()
        obstacle = directory / "postgres"
        obstacle.mkdir()
        (obstacle / "foreign").write_text("initdb wants an empty directory")
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match=r"must start in .*log.*FAENA_PG_URL"):
                await pg.url()
        (obstacle / "foreign").unlink()
        await _ask(pg)


async def test_a_connection_is_of_no_use_after_its_block(pg: Postgres) -> None:
    async with pg.transaction() as connection:
        await connection.execute("SELECT 1")
    with pytest.raises(ArgumentError, match="inside of its block"):
        await connection.execute("CREATE TABLE astray ()")
    async with pg.transaction() as again:
        await again.execute("SELECT 1")


async def _ask(pg: Postgres) -> None:
    async with pg.transaction() as connection:
        await connection.execute("SELECT 1")


@pytest.mark.parametrize("watched", [as_raised, translated])
def test_answers_of_a_pooler_that_died_are_a_lost_connection(watched: Any) -> None:
    """The driver itself has found that they fit no question: PostgreSQL has refused nothing."""
    with (
        pytest.raises(StoreUnavailable, match="cannot be reached: received 2 results"),
        watched("x"),
    ):
        raise psycopg.InternalError("received 2 results from command 'BEGIN'")
    with pytest.raises(StoreRejected), translated("x"):
        raise pg_errors.DataCorrupted("page 7 is damaged")
