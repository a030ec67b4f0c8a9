"""Kills and freezes at every step between a commit and the end of its job, counted by rows."""

from __future__ import annotations

import asyncio
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from faena import Faena
from tests._support.eventually import PATIENCE_S, eventually
from tests._support.forked import Forked
from tests._support.outbox_process import (
    OutboxPlan,
    outbox_app,
    produce,
    relay,
    relay_frozen,
    relay_until,
    sell_until,
    selling_app,
)
from tests._support.search import IS_FULL
from tests._support.valkey import Server
from tests._support.working import obliterate, serving

STRIDE = 1 if IS_FULL else 7
_LEDGER = """
    CREATE TABLE committed (at bigint GENERATED ALWAYS AS IDENTITY, number int);
    CREATE TABLE ran (at bigint GENERATED ALWAYS AS IDENTITY, number int, job text);
"""


@pytest.fixture
def ledger(database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(_LEDGER)
        yield connection


@pytest.fixture
def plan(server: Server, namespace: str, database: str) -> OutboxPlan:
    return OutboxPlan(server.url, namespace, database)


@pytest.fixture
def forked(tmp_path: Path) -> Iterator[Callable[..., Forked]]:
    """Processes that end with the test."""
    running: list[Forked] = []

    def start(run: Callable[..., object], *args: Any) -> Forked:
        running.append(Forked(run, *args, log=tmp_path / "log"))
        return running[-1]

    yield start
    for one in running:
        one.kill()


@asynccontextmanager
async def _working(plan: OutboxPlan) -> AsyncIterator[Faena]:
    app, pg, _ = outbox_app(plan, relay=False)
    await pg.outbox.publish()
    async with serving(app):
        yield app
    await obliterate(app)
    await pg.close()


@pytest.fixture
async def worker(plan: OutboxPlan, ledger: object) -> AsyncIterator[Faena]:
    """Runs jobs, and relays nothing."""
    async with _working(plan) as app:
        yield app


def _commit(plan: OutboxPlan, *numbers: int) -> None:
    _, pg, note = outbox_app(plan, relay=False)
    with psycopg.connect(plan.database) as connection, connection.cursor() as cursor:
        for number in numbers:
            pg.outbox.enqueue_sync(cursor, note, number, tenant="t", key="k")
            cursor.execute("INSERT INTO committed (number) VALUES (%s)", [number])


def _count(ledger: psycopg.Connection[Any], what: str) -> int:
    row = ledger.execute(f"SELECT {what}".encode()).fetchone()
    assert row is not None
    return int(row[0])


def _is_over(ledger: psycopg.Connection[Any]) -> bool:
    lost = "count(*) FROM committed WHERE number NOT IN (SELECT number FROM ran)"
    return not _count(ledger, lost) and not _count(ledger, "count(*) FROM faena.outbox")


def _check_once(ledger: psycopg.Connection[Any], number: int) -> None:
    assert _count(ledger, "count(*) FROM ran") == number
    assert _count(ledger, "count(DISTINCT number) FROM ran") == number


@pytest.mark.parametrize("is_known", [False, True])
async def test_a_relay_may_die_before_and_after_any_of_its_calls(
    plan: OutboxPlan,
    ledger: psycopg.Connection[Any],
    worker: Faena,
    forked: Callable[..., Forked],
    is_known: bool,
) -> None:
    """Those of start, sweep, refill, batch, broker, note and settlement, one after the other.

    A relay that does not know the broker yet refills it, so what others have lost shows only in
    one that does.
    """
    fatal = 0
    _commit(plan, 0, 1)
    if is_known:
        one = forked(relay_until, plan, 0)
        await eventually(lambda process=one: process.code == 0)
    async with asyncio.timeout(2 * PATIENCE_S):  # a row that is lost is never settled
        while True:
            fatal += 1
            _commit(plan, 2 * fatal, 2 * fatal + 1)
            one = forked(relay_until, plan, fatal)
            await eventually(lambda process=one: process.code is not None)
            if one.code == 0:
                break
            assert one.code == -signal.SIGKILL
    assert fatal > 20
    await eventually(lambda: _is_over(ledger))
    _check_once(ledger, 2 * fatal + 2)


@pytest.mark.timeout(3600 if IS_FULL else 120)
async def test_a_relay_may_be_frozen_before_any_of_its_calls_and_wakes_up_beside_another(
    plan: OutboxPlan,
    ledger: psycopg.Connection[Any],
    worker: Faena,
    forked: Callable[..., Forked],
) -> None:
    fatal, number = 1, 0
    while True:
        _commit(plan, number, number + 1)
        one = forked(relay_until, plan, fatal, signal.SIGSTOP)
        await eventually(lambda process=one: process.code is not None or _is_stopped(process))
        if one.code is not None:
            break
        _commit(plan, number + 2, number + 3)
        other = forked(relay, plan)
        await eventually(lambda: _is_over(ledger))
        one.send(signal.SIGCONT)
        _commit(plan, number + 4, number + 5)
        await eventually(lambda process=one: process.code == 0)
        await eventually(lambda: _is_over(ledger))
        other.kill()
        fatal, number = fatal + STRIDE, number + 6
    assert one.code == 0
    assert fatal > 12
    _check_once(ledger, number + 2)


def _is_stopped(process: Forked) -> bool:
    try:
        status = Path(f"/proc/{process.pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] == "T"


async def test_a_handler_with_an_effect_may_die_at_any_of_its_statements(
    plan: OutboxPlan, ledger: psycopg.Connection[Any], forked: Callable[..., Forked]
) -> None:
    """Before and after the record, the effect, the result and the commit."""
    app, pg, sell = selling_app(plan)
    for fatal in (1, 2, 3, 4, 5, 0):
        await sell.enqueue(fatal)
        one = forked(sell_until, plan, fatal)
        await eventually(lambda process=one: process.code is not None)
        assert one.code == (-signal.SIGKILL if fatal else 0)
    _check_once(ledger, 6)
    await obliterate(app)
    await pg.close()


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_frozen_relay_is_replaced_and_does_no_harm_when_it_wakes(
    plan: OutboxPlan,
    ledger: psycopg.Connection[Any],
    worker: Faena,
    forked: Callable[..., Forked],
    when: str,
) -> None:
    _commit(plan, *range(5))
    frozen = forked(relay_frozen, plan, when, 1.0)
    await eventually(lambda: _is_in_transaction(ledger))
    other = forked(relay, plan)
    await eventually(lambda: _is_over(ledger))
    frozen.send(signal.SIGCONT)
    _commit(plan, *range(5, 10))
    await eventually(lambda: _is_over(ledger))
    other.kill()
    _commit(plan, *range(10, 15))
    await eventually(lambda: _is_over(ledger))
    _check_once(ledger, 15)


def _is_in_transaction(ledger: psycopg.Connection[Any]) -> bool:
    return bool(
        _count(
            ledger,
            "count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND state = 'idle in transaction' AND query LIKE '%faena.take%'",
        )
    )


async def test_a_relay_killed_in_the_gap_has_sent_what_the_next_one_does_not_repeat(
    plan: OutboxPlan,
    ledger: psycopg.Connection[Any],
    worker: Faena,
    forked: Callable[..., Forked],
) -> None:
    for batch in range(3):
        _commit(plan, *range(10 * batch, 10 * batch + 10))
        one = forked(relay_frozen, plan, "killed", 15.0)
        await eventually(lambda process=one: process.code == -signal.SIGKILL)
        sent = 10 * batch + 10
        await eventually(lambda number=sent: _count(ledger, "count(*) FROM ran") == number)
    forked(relay, plan)
    await eventually(lambda: _is_over(ledger))
    _check_once(ledger, 30)


async def test_the_order_of_a_key_outlives_kills_late_commits_and_a_full_queue(
    server: Server,
    namespace: str,
    database: str,
    ledger: psycopg.Connection[Any],
    forked: Callable[..., Forked],
) -> None:
    plan = OutboxPlan(server.url, namespace, database, order="key", hard=20)
    async with _working(plan):
        late = psycopg.connect(database)
        _, pg, note = outbox_app(plan, relay=False)
        with late, late.cursor() as cursor:
            pg.outbox.enqueue_sync(cursor, note, 9000, tenant="t0", key="k")
            cursor.execute("INSERT INTO committed (number) VALUES (9000)")
            producers = [forked(produce, plan, 1000 * i, 150) for i in range(2)]
            relays = [forked(relay, plan), forked(relay, plan)]
            for victim in (0, 1, 0, 1):
                known = _count(ledger, "count(*) FROM ran")
                await eventually(
                    lambda number=known: (
                        _count(ledger, "count(*) FROM ran") > number
                        or all(one.code == 0 for one in producers)
                    )
                )
                relays[victim].kill()
                relays[victim] = forked(relay, plan)
            await eventually(lambda: all(one.code == 0 for one in producers))
        await eventually(lambda: _is_over(ledger))
    _check_once(ledger, _count(ledger, "count(*) FROM committed"))
    overtaken = """
        count(*) FROM ran one JOIN ran other ON one.number / 1000 = other.number / 1000
            AND one.number % 5 = other.number % 5
        WHERE one.number < other.number AND one.at > other.at
    """
    assert _count(ledger, overtaken) == 0


async def test_a_broker_whose_data_directory_is_deleted_under_load_loses_nothing(
    namespace: str,
    database: str,
    ledger: psycopg.Connection[Any],
    forked: Callable[..., Forked],
) -> None:
    """Killed with -9, its directory deleted, started empty on the same port, three times."""
    with Server() as server:
        plan = OutboxPlan(server.url, namespace, database)
        app, pg, _ = outbox_app(plan, relay=False)
        await pg.outbox.publish()
        async with serving(app):
            producers = [forked(produce, plan, 1000 * i, 300) for i in range(2)]
            forked(relay, plan)
            forked(relay, plan)
            for _ in range(3):
                known = _count(ledger, "count(*) FROM ran")
                await eventually(
                    lambda number=known: (
                        _count(ledger, "count(*) FROM ran") > number + 20
                        or all(one.code == 0 for one in producers)
                    )
                )
                server.kill()
                for path in server.directory.glob("appendonly*"):
                    shutil.rmtree(path)
                server.start()
            await eventually(lambda: all(one.code == 0 for one in producers))
            await eventually(lambda: _is_over(ledger))
        await app.close()
        await pg.close()
    assert _count(ledger, "count(*) FROM committed") > 400
    astray = "count(*) FROM ran WHERE number NOT IN (SELECT number FROM committed)"
    assert _count(ledger, astray) == 0
