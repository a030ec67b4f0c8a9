"""The outbox of a queue whose tenants move between shards: each job runs once, each row goes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest

from faena import Faena, Job, Queue, Retain, Task
from faena.pg import Postgres
from faena.pg.dispatch import Dispatch, Taken
from faena.pg.relay import OutboxRelay, _fetch
from faena.pg.settlement import Settlements
from tests._support.eventually import eventually
from tests._support.valkey import Server
from tests._support.working import obliterate, serving


class Parts(NamedTuple):
    """A program whose workers relay nothing, and a relay that is asked step by step."""

    pg: Postgres
    queue: Queue
    note: Task[int, None]
    relay: OutboxRelay
    settlements: Settlements
    ran: list[int]
    gate: asyncio.Event
    """Job 2 waits for it."""

    async def commit(self, number: int) -> str:
        async with self.pg.transaction() as connection:
            return await self.pg.outbox.enqueue(connection, self.note, number, tenant="acme")

    async def relay_once(self) -> int | None:
        async with self.pg.session() as connection:
            return await self.relay.run_once(connection)

    async def send_and_die(self) -> None:
        """As a relay that is killed after it has sent rows, and before it has noted that."""
        dispatch = Dispatch(self.pg.app, f"@{await self.pg.outbox.name()}")
        async with self.pg.session() as connection:
            rows = await _fetch(connection, self.relay._take(connection))
            assert rows
            until = float("inf")
            await dispatch.send(Taken(rows, self.settlements.complete_until_us, until))
            await connection.execute("ROLLBACK")

    async def run_all(self, number: int) -> None:
        """Work until so many jobs have run, and are gone."""
        async with serving(self.pg.app):
            await eventually(lambda: len(self.ran) >= number)
            await eventually(self._is_empty)

    async def _is_empty(self) -> bool:
        return not any((await self.queue.counts()).values())

    async def rows(self) -> list[Any]:
        async with self.pg.transaction() as connection:
            found = await connection.execute("SELECT id, sent_at IS NOT NULL FROM faena.outbox")
            return await found.fetchall()


@pytest.fixture
async def parts(server: Server, namespace: str, database: str) -> AsyncIterator[Parts]:
    app = Faena("shop", server.url, namespace=namespace)
    ran: list[int] = []
    gate = asyncio.Event()
    async with Postgres(app, database, relay=False) as pg:
        queue = app.queue("work", order="tenant", retain=Retain(completed_count=0))

        @queue.task
        async def note(number: int, job: Job) -> None:
            ran.append(number)
            if number == 2:
                await gate.wait()

        await pg.outbox.publish()
        name = f"@{await pg.outbox.name()}"
        settlements = Settlements(pg, (await app.runtime()).engine, name)
        relay = OutboxRelay(pg, settlements, name)
        yield Parts(pg, queue, note, relay, settlements, ran, gate)
    await obliterate(app)


@pytest.mark.parametrize("way", ["dedicated", "shared", "resharded"])
async def test_a_job_that_has_come_and_gone_is_not_sent_again_where_its_tenant_has_moved(
    parts: Parts, way: str
) -> None:
    """Its relay was killed, and the next one has swept settlements just before."""
    tenant = parts.queue.tenant("acme")
    await parts.queue.reshard(2)
    if way == "shared":
        await tenant.dedicate()
    await parts.settlements.sweep()
    await parts.commit(1)
    await parts.send_and_die()
    await parts.run_all(1)
    if way == "dedicated":
        await tenant.dedicate()
    elif way == "shared":
        await tenant.rejoin()
    else:
        await parts.queue.reshard(12)
    await parts.relay_once()
    await parts.commit(3)
    await parts.relay_once()
    await parts.run_all(2)
    assert parts.ran == [1, 3]
    await parts.settlements.sweep()
    assert await parts.rows() == []


async def test_nor_while_its_tenant_moves(parts: Parts) -> None:
    """A job that runs keeps it from ending the move."""
    await parts.settlements.sweep()
    await parts.commit(1)
    await parts.send_and_die()
    await parts.run_all(1)
    async with serving(parts.pg.app):
        await parts.note.enqueue(2, tenant="acme")
        await eventually(lambda: parts.ran == [1, 2])
        moving = asyncio.create_task(parts.queue.tenant("acme").dedicate())
        await eventually(lambda: _is_moving(parts.queue))
        await parts.relay_once()
        parts.gate.set()
        await moving
    await parts.run_all(2)
    assert parts.ran == [1, 2]


async def _is_moving(queue: Queue) -> bool:
    return (await queue.shards()).is_moving


async def test_what_was_settled_in_a_shard_that_is_given_up_is_heard_of(parts: Parts) -> None:
    tenant = parts.queue.tenant("acme")
    await tenant.dedicate()
    job = await parts.commit(1)
    await parts.relay_once()
    assert await parts.rows() == [(job, True)]
    await parts.run_all(1)
    await tenant.rejoin()
    await parts.settlements.sweep()
    assert await parts.rows() == []
    engine = (await parts.pg.app.runtime()).engine
    assert await engine.command("HGET", "work/@acme", "conf", "retired"), "it is needed no more"
