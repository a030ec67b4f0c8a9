"""A PostgreSQL that is absent, frozen or slow stops no job that does not need it.

What does need it goes on by itself when it is back.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from faena import Faena, Retry, Task
from faena.errors import ArgumentError, StoreUnavailable
from faena.pg import Connection, History, Postgres
from tests._support.eventually import PATIENCE_S, eventually
from tests._support.postgres import KILLABLE, Cluster, migrate
from tests._support.valkey import Server, free_port
from tests._support.working import serving

JOBS = 100
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def _own() -> Iterator[Cluster]:
    with Cluster(*KILLABLE) as cluster:
        migrate(cluster.create("template"))
        yield cluster


@pytest.fixture
def own(_own: Cluster) -> Iterator[tuple[Cluster, str]]:
    """A server that a test may freeze and kill, and the URL of a database there."""
    name = f"test_{next(_numbers)}"
    yield _own, _own.create(name, "template").replace(_own.url(name), _own.tcp_url(name))
    _own.drop(name)


class Rig(NamedTuple):
    """An app with tasks that need PostgreSQL and one that does not."""

    app: Faena
    pg: Postgres
    plain: Task[int, int]
    sell: Task[int, int]
    note: Task[int, None]
    ran: list[int]
    leave: asyncio.Event


@asynccontextmanager
async def rig(server: Server, namespace: str, url: str, **options: Any) -> AsyncIterator[Rig]:
    app = Faena("shop", server.url, namespace=namespace)
    pg = Postgres(app, url, **{"patience": "1s", "history": History(), **options})
    ran, leave = [], asyncio.Event()
    leave.set()
    patient = Retry.fixed("100ms", attempts=1000)

    @app.queue("plain", concurrency=5).task
    async def plain(number: int) -> int:
        return number

    @app.queue("sales", concurrency=5, retry=patient).task
    @pg.effect
    async def sell(transaction: Connection, number: int) -> int:
        await leave.wait()
        await transaction.execute("SELECT 1")
        return number

    @app.queue("notes").task
    async def note(number: int) -> None:
        ran.append(number)

    async with app, pg:
        yield Rig(app, pg, plain, sell, note, ran, leave)


async def enqueue_outbox(made: Rig, number: int) -> None:
    async with made.pg.transaction() as connection:
        await made.pg.outbox.enqueue(connection, made.note, number)


async def run_plain(made: Rig) -> None:
    """Jobs that need no PostgreSQL are enqueued, run and end."""
    receipts = await made.plain.enqueue_many(list(range(JOBS)))
    results = [await one.handle.result(timeout=f"{PATIENCE_S:.0f}s") for one in receipts]
    assert results == list(range(JOBS))


async def check_recovery(made: Rig, sold: Any) -> None:
    """Effects and the outbox go on, with nobody's help."""
    assert await sold.handle.result(timeout="60s") == 1
    await eventually(lambda: _try_outbox(made))
    await eventually(lambda: 7 in made.ran)


async def _try_outbox(made: Rig) -> bool:
    try:
        await enqueue_outbox(made, 7)
    except (StoreUnavailable, ArgumentError):  # the worker has not published the task yet
        return False
    return True


async def test_it_was_never_there(server: Server, namespace: str) -> None:
    url = f"postgresql://postgres@127.0.0.1:{free_port()}/shop"
    async with rig(server, namespace, url) as made, serving(made.app):
        await made.sell.enqueue(1)
        await run_plain(made)


async def test_it_comes_later(server: Server, namespace: str, own: tuple[Cluster, str]) -> None:
    cluster, url = own
    cluster.kill()
    async with rig(server, namespace, url) as made, serving(made.app):
        sold = await made.sell.enqueue(1)
        await run_plain(made)
        cluster.start()
        await check_recovery(made, sold)


async def test_it_freezes_and_thaws(
    server: Server, namespace: str, own: tuple[Cluster, str]
) -> None:
    cluster, url = own
    async with rig(server, namespace, url) as made, serving(made.app):
        await made.pg.outbox.publish()
        await enqueue_outbox(made, 1)
        await eventually(lambda: 1 in made.ran)
        with cluster.frozen():
            sold = await made.sell.enqueue(1)
            await run_plain(made)
        await check_recovery(made, sold)


async def test_it_dies_and_comes_back(
    server: Server, namespace: str, own: tuple[Cluster, str]
) -> None:
    cluster, url = own
    async with rig(server, namespace, url) as made, serving(made.app):
        await made.pg.outbox.publish()
        await enqueue_outbox(made, 1)
        await eventually(lambda: 1 in made.ran)
        made.leave.clear()
        sold = await made.sell.enqueue(1)
        await eventually(lambda: _is_running(made))
        cluster.kill()
        made.leave.set()
        await run_plain(made)
        cluster.start()
        await check_recovery(made, sold)


async def _is_running(made: Rig) -> bool:
    return (await made.app.queues["sales"].counts())["running"] == 1


async def test_slow_effects_have_all_connections(
    server: Server, namespace: str, own: tuple[Cluster, str]
) -> None:
    async with rig(server, namespace, own[1], pool=2) as made, serving(made.app):
        await made.pg.outbox.publish()
        made.leave.clear()
        sold = [await made.sell.enqueue(1) for _ in range(5)]
        await eventually(lambda: _are_slow(made))
        await run_plain(made)
        made.leave.set()
        for one in sold:
            await check_recovery(made, one)


async def _are_slow(made: Rig) -> bool:
    stats = (await made.pg._pools.here(await made.pg.url())).get_stats()
    return stats["pool_size"] == 2 and stats["pool_available"] == 0


async def test_a_worker_stops_while_it_is_frozen(
    server: Server, namespace: str, own: tuple[Cluster, str]
) -> None:
    cluster, url = own
    async with rig(server, namespace, url) as made:
        worker = await made.app.worker()
        running = asyncio.create_task(worker.run())
        await made.pg.outbox.publish()
        await enqueue_outbox(made, 1)
        await eventually(lambda: 1 in made.ran)
        with cluster.frozen():
            await run_plain(made)
            worker.stop()
            await eventually(running.done)
            await running


async def test_connections_of_a_server_that_was_restarted_are_not_handed_out(
    server: Server, namespace: str, own: tuple[Cluster, str]
) -> None:
    cluster, url = own
    async with rig(server, namespace, url, relay=False, patience="60s") as made:
        for _ in range(2):
            await asyncio.gather(*(_use(made.pg) for _ in range(5)))
            cluster.stop()
            cluster.start()
            await asyncio.gather(*(_use(made.pg) for _ in range(5)))
            await asyncio.to_thread(_use_sync, made.pg)


async def _use(pg: Postgres) -> None:
    async with pg.transaction() as connection:
        await connection.execute("SELECT pg_sleep(0.01)")


def _use_sync(pg: Postgres) -> None:
    with pg.transaction_sync() as connection:
        connection.execute("SELECT 1")
