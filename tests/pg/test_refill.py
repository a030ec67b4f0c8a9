"""Jobs that the broker has lost are found, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from faena import Faena, Retain, Task
from faena.errors import StoreUnavailable
from faena.pg import Postgres, refill
from faena.pg.refill import LOCK, Refill
from faena.pg.relay import OutboxRelay
from faena.pg.settlement import Settlements
from tests._support.eventually import eventually
from tests._support.valkey import Server
from tests._support.working import Working, serving


class Program:
    """One with a queue, whose relay and refill run when a test says so."""

    def __init__(self, app: Faena, pg: Postgres, task: Task[int, None]) -> None:
        self.app, self.pg, self.task = app, pg, task
        self.recipient = ""
        self._relay: OutboxRelay | None = None
        self.refill: Refill | None = None

    async def start(self) -> None:
        await self.pg.outbox.publish()
        self.recipient = f"@{await self.pg.outbox.name()}"
        engine = (await self.app.runtime()).engine
        settlements = Settlements(self.pg, engine, self.recipient)
        self._relay = OutboxRelay(self.pg, settlements, self.recipient)
        self.refill = Refill(self.pg, engine, settlements, self.recipient)

    async def put(self, *numbers: int, **options: Any) -> None:
        """Enqueue and relay."""
        async with self.pg.transaction() as connection:
            for number in numbers:
                await self.pg.outbox.enqueue(
                    connection, self.task, number, **{"delay": "1h", **options}
                )
        await self.relay()

    async def relay(self) -> None:
        assert self._relay is not None
        async with self.pg.session() as connection:
            await self._relay.run_once(connection)

    async def look(self) -> int:
        assert self.refill is not None
        return await self.refill.run_once()

    async def count(self) -> int:
        async with self.pg.transaction() as connection:
            return len(await (await connection.execute("SELECT FROM faena.outbox")).fetchall())

    async def servers(self) -> str:
        """Those that were compared with the outbox, or who is at it."""
        async with self.pg.transaction() as connection:
            found = await connection.execute("SELECT servers FROM faena.brokers")
            return str((await found.fetchall())[0][0])

    async def mark(self) -> None:
        engine = (await self.app.runtime()).engine
        await engine.command("HSET", self.task.queue, "received", self.recipient, "0-0")


def _program(server: Server, namespace: str, database: str, queue: str, **options: Any) -> Program:
    app = Faena("shop", server.url, namespace=namespace)
    pg = Postgres(app, database, relay=False)

    @app.queue(queue, **options).task
    async def note(number: int) -> None: ...

    return Program(app, pg, note)


@pytest.fixture
async def programs(
    server: Server, namespace: str, database: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[list[Program]]:
    monkeypatch.setattr(refill, "_EVERY_S", 0.0)
    made = [_program(server, namespace, database, queue) for queue in ("work", "other")]
    for one in made:
        await one.start()
    yield made
    for one in made:
        await one.pg.close()
        await one.app.close()


def _flush(server: Server) -> None:
    with server.client() as client:
        client.flushall()


async def test_rows_that_somebody_has_locked_are_looked_at_later(
    programs: list[Program], server: Server, database: str
) -> None:
    one = programs[0]
    await one.put(1, 2, 3, 4)
    assert await one.look() == 0
    with psycopg.connect(database) as holder:
        holder.execute("SELECT FROM faena.outbox WHERE number % 2 = 0 FOR UPDATE")
        _flush(server)
        assert await one.look() == 2
    assert await one.look() == 2
    assert await one.look() == 0


async def test_a_look_waits_for_a_relay_that_has_sent_and_not_noted_it(
    programs: list[Program], server: Server, database: str
) -> None:
    one = programs[0]
    await one.put(1)
    assert await one.look() == 0
    with psycopg.connect(database) as frozen, psycopg.connect(database, autocommit=True) as other:
        other.execute("UPDATE faena.outbox SET sent_at = NULL")
        frozen.execute(f"SELECT pg_advisory_xact_lock({LOCK})".encode())
        frozen.execute("UPDATE faena.outbox SET sent_at = now()")
        _flush(server)
        looking = asyncio.create_task(one.look())
        waits = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        await eventually(lambda: looking.done() or other.execute(waits.encode()).fetchone())
        frozen.commit()
        assert await looking == 1


async def test_a_broker_that_is_emptied_during_a_look_is_looked_at_again(
    programs: list[Program], server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, look = programs[0], Refill._look
    await one.put(1, 2)
    assert await one.look() == 0

    async def interrupted(self: Refill, shards: Any) -> Any:
        monkeypatch.setattr(Refill, "_look", look)
        found = await look(self, shards)
        await one.relay()
        _flush(server)
        return found

    monkeypatch.setattr(Refill, "_look", interrupted)
    _flush(server)
    assert await one.look() == 2
    assert await one.look() == 2


async def test_a_broker_that_is_replaced_during_a_look_is_looked_at_again_at_once(
    namespace: str, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the mark, as one that was restored from a copy without the last jobs."""
    look = Refill._look
    with Server() as server:
        one = _program(server, namespace, database, "work")

        async def interrupted(self: Refill, shards: Any) -> Any:
            monkeypatch.setattr(Refill, "_look", look)
            found = await look(self, shards)
            server.restart()
            _flush(server)
            await one.mark()
            return found

        async with one.pg, one.app:
            await one.start()
            await one.put(1, 2)
            monkeypatch.setattr(Refill, "_look", interrupted)
            assert [await one.look() for _ in range(2)] == [0, 2]


async def test_the_end_of_an_older_look_does_not_hide_one_that_died(
    programs: list[Program], server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that died has marked the shards of a broker that has lost its jobs."""
    one, look = programs[0], Refill._look
    await one.put(1, 2)
    assert one.refill is not None
    engine = (await one.app.runtime()).engine
    other = Refill(one.pg, engine, one.refill._settlements, one.recipient)

    async def dies(self: Refill, shards: Any) -> Any:
        raise StoreUnavailable("it was killed", op="refill")

    async def interrupted(self: Refill, shards: Any) -> Any:
        found = await look(self, shards)
        _flush(server)
        monkeypatch.setattr(Refill, "_look", dies)
        with pytest.raises(StoreUnavailable, match="it was killed"):
            await other.run_once()
        monkeypatch.setattr(Refill, "_look", look)
        return found

    monkeypatch.setattr(Refill, "_look", interrupted)
    assert await one.look() == 0
    assert await one.look() == 2


async def test_jobs_that_end_during_a_look_are_not_lost(
    server: Server, namespace: str, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They end after its first sweep, and are not kept."""
    retain, sweep = Retain(completed_count=0), Settlements.sweep
    one = _program(server, namespace, database, "work", retain=retain)

    async def is_empty() -> bool:
        return not any((await one.app.queues["work"].counts()).values())

    async def late(self: Settlements) -> None:
        monkeypatch.setattr(Settlements, "sweep", sweep)
        await sweep(self)
        async with serving(one.app):
            await eventually(is_empty)

    async with one.pg, one.app:
        await one.start()
        await one.put(1, 2, delay="0s")
        monkeypatch.setattr(Settlements, "sweep", late)
        assert await one.look() == 0
        assert await one.count() == 0
        assert not (await one.servers()).startswith("looked at"), "the look is over"


async def test_a_job_that_is_sent_again_during_a_look_is_not_lost(
    server: Server, namespace: str, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refill of another program has found it missing as well, and a relay was faster."""
    one, sweep, sweeps = _program(server, namespace, database, "work"), Settlements.sweep, 0

    async def late(self: Settlements) -> None:
        nonlocal sweeps
        sweeps += 1
        await sweep(self)
        if sweeps == 2:
            async with one.pg.transaction() as connection:
                await connection.execute("UPDATE faena.outbox SET sent_at = NULL")
            await one.relay()

    async with one.pg, one.app:
        await one.start()
        await one.put(1)
        _flush(server)
        monkeypatch.setattr(Settlements, "sweep", late)
        assert await one.look() == 0
        assert sweeps == 2
        assert (await one.pg.outbox.view()).pending == 0


async def test_each_program_looks_after_its_own_queues(
    programs: list[Program], server: Server
) -> None:
    for one in programs:
        await one.put(1)
        assert await one.look() == 0
    _flush(server)  # and then restored from a copy without those jobs
    for one in programs:
        await one.mark()
    async with programs[0].pg.transaction() as connection:
        await connection.execute("UPDATE faena.brokers SET servers = 'before'")
    assert [await one.look() for one in programs] == [1, 1]
    assert [await one.look() for one in programs] == [0, 0]


async def test_a_row_whose_job_came_by_another_way_goes(programs: list[Program]) -> None:
    one = programs[0]
    await one.task.enqueue(5, id="twice", delay="1h")
    await one.put(5, id="twice")
    await one.put(6, id="own")
    async with one.pg.transaction() as connection:
        found = await connection.execute("SELECT id FROM faena.outbox")
        assert await found.fetchall() == [("own",)]


async def test_another_payload_under_an_id_of_a_job_that_has_just_ended_is_refused(
    app: Faena, pg: Postgres, working: Working
) -> None:
    ran: list[int] = []

    @app.queue("work", retain=Retain(completed_count=0)).task
    async def note(number: int) -> None:
        ran.append(number)

    async def put(number: int) -> None:
        async with pg.transaction() as connection:
            await pg.outbox.enqueue(connection, note, number, id="order-1")

    async def refused() -> list[tuple[Any, ...]]:
        async with pg.transaction() as connection:
            found = await connection.execute("SELECT refused FROM faena.outbox")
            return await found.fetchall()

    async def is_empty() -> bool:
        return not await refused()

    async def is_refused() -> bool:
        return any(words for (words,) in await refused())

    await pg.outbox.publish()
    async with working(app):
        for _ in range(2):
            await put(1)
            await eventually(is_empty)
        await put(2)
        await eventually(is_refused)
    assert ran == [1]
    assert await refused() == [("another job of queue work has the id order-1",)]
