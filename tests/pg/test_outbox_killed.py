"""Whatever dies between a commit and the end of its job, each job runs, and none twice for that.

The ledger is in the database: `committed` is written with the job, `ran` by its handler.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from faena import Faena
from faena.pg import Postgres
from faena.pg.refill import Refill
from faena.pg.relay import OutboxRelay
from faena.pg.settlement import Settlements
from tests._support.eventually import eventually
from tests._support.forked import Forked
from tests._support.outbox_process import OutboxPlan, outbox_app, produce, relay
from tests._support.valkey import Server
from tests._support.working import obliterate, serving

LEDGER = """
    CREATE TABLE committed (number int);
    CREATE TABLE ran (at bigint GENERATED ALWAYS AS IDENTITY, number int, job text);
"""


@pytest.fixture
async def ledger(pg: Postgres) -> Postgres:
    async with pg.transaction() as connection:
        await connection.execute(LEDGER.encode())
    return pg


@pytest.fixture
def plan(server: Server, namespace: str, database: str) -> OutboxPlan:
    return OutboxPlan(server.url, namespace, database)


@pytest.fixture
async def worker(plan: OutboxPlan, ledger: Postgres) -> AsyncIterator[Faena]:
    """Runs jobs, and relays nothing."""
    app, pg, _ = outbox_app(plan, relay=False)
    await pg.outbox.publish()
    async with serving(app):
        yield app
    await obliterate(app)
    await pg.close()


async def _count(pg: Postgres, what: str) -> int:
    async with pg.transaction() as connection:
        found = await connection.execute(f"SELECT {what}".encode())
        row = await found.fetchone()
        assert row is not None
        return int(row[0])


async def _is_all_run(pg: Postgres) -> bool:
    missing = "count(*) FROM committed WHERE number NOT IN (SELECT number FROM ran)"
    return await _count(pg, missing) == 0


async def _is_settled(pg: Postgres) -> bool:
    return await _count(pg, "count(*) FROM faena.outbox") == 0


async def _check_ledger(pg: Postgres, number: int) -> None:
    await eventually(lambda: _is_all_run(pg))
    await eventually(lambda: _is_settled(pg))
    assert 0 < await _count(pg, "count(*) FROM committed") < number
    assert await _count(pg, "count(*) - count(DISTINCT number) FROM ran") == 0
    astray = "count(*) FROM ran WHERE number NOT IN (SELECT number FROM committed)"
    assert await _count(pg, astray) == 0


async def test_relays_that_are_killed_lose_nothing_and_send_nothing_twice(
    plan: OutboxPlan, ledger: Postgres, worker: Faena, tmp_path: Path
) -> None:
    dice, log = random.Random(7), tmp_path / "log"
    producers = [Forked(produce, plan, 1000 * i, 400, log=log) for i in range(2)]
    relays = [Forked(relay, plan, log=log) for _ in range(2)]
    for _ in range(8):
        before = await _count(ledger, "count(*) FROM ran")
        await eventually(lambda known=before: _has_more(ledger, known))
        victim = dice.randrange(2)
        relays[victim].kill()
        relays[victim] = Forked(relay, plan, log=log)
    await eventually(lambda: all(one.code == 0 for one in producers))
    await _check_ledger(ledger, 800)
    for one in relays:
        one.kill()


async def _has_more(pg: Postgres, known: int) -> bool:
    is_over = await _is_all_run(pg) and await _count(pg, "count(*) FROM committed") > 0
    return is_over or await _count(pg, "count(*) FROM ran") > known


async def test_a_broker_that_has_lost_everything_is_refilled(
    plan: OutboxPlan, ledger: Postgres, worker: Faena, server: Server, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    producer = Forked(produce, plan, 0, 500, log=log)
    relaying = Forked(relay, plan, log=log)
    for _ in range(3):
        before = await _count(ledger, "count(*) FROM ran")
        await eventually(lambda known=before: _has_more(ledger, known))
        with server.client() as client:
            client.flushall()
    await eventually(lambda: producer.code == 0)
    await eventually(lambda: _is_all_run(ledger))
    await eventually(lambda: _is_settled(ledger))
    relaying.kill()


async def test_a_job_that_has_come_and_gone_is_not_taken_for_a_lost_one(
    plan: OutboxPlan, ledger: Postgres, worker: Faena
) -> None:
    app, pg, note = outbox_app(plan, relay=False)
    async with pg:
        engine, name = (await app.runtime()).engine, f"@{await pg.outbox.name()}"
        settlements = Settlements(pg, engine, name)
        async with pg.transaction() as connection:
            job = await pg.outbox.enqueue(connection, note, 1)
        async with await pg.connect(plan.database, autocommit=True) as connection:
            assert await OutboxRelay(pg, settlements, name).run_once(connection) == 1
        await eventually(lambda: _is_gone(worker, job))
        assert await Refill(pg, engine, settlements, name).run_once() == 0
        assert await _is_settled(pg)
    await app.close()


async def _is_gone(app: Faena, job: str) -> bool:
    return await app.queues["work"].handle(job).view() is None
