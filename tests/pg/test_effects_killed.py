"""Workers that die before, in and after their transactions: one effect for each job."""

from __future__ import annotations

import random
import signal
from pathlib import Path

from faena.pg import Postgres
from tests._support.effect_process import EffectPlan, effect_app, work
from tests._support.eventually import eventually
from tests._support.forked import Forked
from tests._support.valkey import Server
from tests._support.working import obliterate

JOBS = 300


async def test_workers_that_are_killed_or_frozen_leave_one_effect_for_each_job(
    pg: Postgres, server: Server, namespace: str, database: str, tmp_path: Path
) -> None:
    async with pg.transaction() as connection:
        await connection.execute("CREATE TABLE sold (number int)")
    plan, dice, log = (
        EffectPlan(server.url, namespace, database),
        random.Random(3),
        tmp_path / "log",
    )
    app, own, sell = effect_app(plan)
    receipts = await sell.enqueue_many(list(range(JOBS)))
    workers = [Forked(work, plan, log=log) for _ in range(3)]
    for turn in range(8):
        before = await _sold(pg)
        await eventually(lambda known=before: _has_grown(pg, known))
        victim = dice.randrange(3)
        if turn % 4 == 3:  # it loses its leases, and comes back to commit
            workers[victim].send(signal.SIGSTOP)
            frozen_at = await _sold(pg)
            await eventually(lambda known=frozen_at: _has_grown(pg, known))
            workers[victim].send(signal.SIGCONT)
        else:
            workers[victim].kill()
            workers[victim] = Forked(work, plan, log=log)
    results = [await one.handle.result(timeout="60s") for one in receipts]
    assert results == list(range(JOBS))
    async with pg.transaction() as connection:
        found = await connection.execute("SELECT count(*), count(DISTINCT number) FROM sold")
        assert await found.fetchone() == (JOBS, JOBS)
    for one in workers:
        one.kill()
    await obliterate(app)
    await own.close()


async def _sold(pg: Postgres) -> int:
    async with pg.transaction() as connection:
        found = await connection.execute("SELECT count(*) FROM sold")
        row = await found.fetchone()
        assert row is not None
        return int(row[0])


async def _has_grown(pg: Postgres, known: int) -> bool:
    return await _sold(pg) > known or await _sold(pg) == JOBS
