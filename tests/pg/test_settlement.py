"""Rows go when their jobs are settled, and nothing is said to be known that is not."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest

from faena import Faena
from faena.errors import StoreRejected
from faena.pg import Postgres
from faena.pg.relay import OutboxRelay
from faena.pg.settlement import SWEEP_S, Settlements
from tests._support.eventually import eventually
from tests._support.working import Working

MINUTE = 60_000_000


@pytest.fixture
async def still(app: Faena, database: str) -> AsyncIterator[Postgres]:
    """Its workers neither relay nor settle: tests do."""
    app.queue("work")
    async with Postgres(app, database, relay=False) as pg:
        yield pg


@pytest.fixture
async def settlements(still: Postgres) -> Settlements:
    engine = (await still.app.runtime()).engine
    return Settlements(still, engine, f"@{await still.outbox.name()}")


async def _rows(pg: Postgres) -> int:
    async with pg.transaction() as connection:
        found = await connection.execute("SELECT id FROM faena.outbox")
        return len(await found.fetchall())


async def _rename(pg: Postgres, old: str, new: str) -> None:
    async with pg.transaction() as connection:
        await connection.execute(f"ALTER TABLE faena.{old} RENAME TO {new}".encode())


async def test_a_sweep_claims_to_know_only_what_was_settled_before_it(
    app: Faena, settlements: Settlements, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ends after its shard was looked at is not taken in, however long the sweep lasts."""
    engine, take = (await app.runtime()).engine, Settlements._take
    began = int(time.time()) * 1_000_000
    engine.clock = lambda: began

    async def slow(self: Settlements, shard: str) -> None:
        await take(self, shard)
        engine.clock = lambda: began + MINUTE

    monkeypatch.setattr(Settlements, "_take", slow)
    await settlements.sweep()
    engine.clock = None
    assert settlements.complete_until_us == began


async def test_a_shard_whose_rows_could_not_be_deleted_is_taken_in_without_a_sweep(
    app: Faena, still: Postgres, settlements: Settlements, working: Working
) -> None:
    ran: list[int] = []

    @app.queues["work"].task
    async def note(number: int) -> None:
        ran.append(number)

    async def is_completed() -> bool:
        return (await app.queues["work"].counts())["completed"] == 1

    await still.outbox.publish()
    async with still.transaction() as connection:
        await still.outbox.enqueue(connection, note, 1)
    relay = OutboxRelay(still, settlements, f"@{await still.outbox.name()}")
    async with still.session() as connection:
        await relay.run_once(connection)
    async with working(app):
        await eventually(is_completed)
    settlements.swept_at = time.monotonic() + SWEEP_S  # none is due for as long as a test lasts
    settlements.notify("work")
    await _rename(still, "outbox", "away")
    with pytest.raises(StoreRejected):
        await settlements.run_once()
    await _rename(still, "away", "outbox")
    assert await _rows(still) == 1
    await settlements.run_once()
    assert await _rows(still) == 0
    assert ran == [1]
