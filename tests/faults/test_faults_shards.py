"""Shards under faults, judged by the ledger: jobs move while workers, whoever moves them and the
broker die, and nothing is lost, runs out of order or overlaps.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from faena import Faena
from faena.errors import FaenaError
from faena.sharding.routing_table import Change
from tests._support.chain_order import deliveries, key_of, overlaps, overtakings, tenant_of
from tests._support.eventually import eventually
from tests._support.fault_app import QueuePlan
from tests._support.lane_app import QUEUE, LanePlan, LaneWork, all_ended, at_work, job_id, line_up
from tests._support.server_group import ClusterGroup
from tests._support.valkey import Server

TENANTS = [f"t{number}" for number in range(8)]
NAMING = {"tenant": tenant_of, "key": key_of}


@pytest.fixture
def server() -> Iterator[Server]:
    with Server("appendonly yes", "appendfsync always", unix=True) as server:
        yield server


@pytest.fixture
def plan_for(server: Server, tmp_path: Path) -> Callable[..., LanePlan]:
    def plan(**options: Any) -> LanePlan:
        queues = {QUEUE: QueuePlan(retry_wait="60ms")}
        return LanePlan(url=server.url, ledger=str(tmp_path / "ledger"), queues=queues, **options)

    return plan


def works(first: int, last: int) -> Iterator[tuple[str, LaneWork]]:
    for number in range(first, last):
        for tenant in TENANTS:
            yield job_id(tenant, "a", number), LaneWork(ms=5, fails=int(number % 6 == 3))


@asynccontextmanager
async def producing(app: Faena, batches: int = 8) -> AsyncGenerator[set[str]]:
    """Enqueue in order, a few of each tenant at a time, all through the block."""
    accepted: set[str] = set()

    async def produce() -> None:
        for batch in range(batches):
            accepted.update(await line_up(app, works(5 * batch, 5 * batch + 5)))
            await asyncio.sleep(0.05)

    work = asyncio.create_task(produce())
    try:
        yield accepted
        await work
    finally:
        work.cancel()


async def is_settled(app: Faena) -> bool:
    return not (await app.queues[QUEUE].shards()).is_moving


def judge(processes: Any, accepted: set[str], order: str) -> None:
    found = deliveries(processes.ledger)
    assert {one.job for one in found if one.end == "finish"} == accepted
    assert overlaps(found, NAMING[order]) == []
    assert overtakings(found, NAMING[order]) == []


@pytest.mark.parametrize("order", ["tenant", "key"])
async def test_a_queue_grows_and_tenants_come_and_go_while_workers_are_killed(
    plan_for: Callable[..., LanePlan], order: str
) -> None:
    async with at_work(plan_for(order=order), 3) as (processes, app):
        queue = app.queues[QUEUE]
        async with producing(app) as accepted:
            await processes.lose(10)
            await queue.reshard(3)
            processes.replace()
            await queue.tenant("t1").dedicate()
            processes.replace()
            await queue.reshard(4)
            processes.replace()
            await queue.tenant("t1").rejoin()
        await eventually(lambda: is_settled(app))
        await all_ended(app, completed=len(accepted))
        assert len(accepted) == 320
        judge(processes, accepted, order)
    assert processes.ledger.unexplained() == []


async def test_whoever_serves_the_queue_carries_on_for_whoever_began_and_died(
    plan_for: Callable[..., LanePlan],
) -> None:
    plan = plan_for(order="tenant")
    async with at_work(plan, 3) as (processes, app):
        router = (await app.runtime()).routers.of(QUEUE)
        async with producing(app) as accepted:
            await processes.lose(10)
            for change in (
                Change(shards=3),
                Change(own="@t2"),
                Change(shards=5),
                Change(shared="@t2"),
            ):
                table = await router.relocation.table()
                assert not table.phase
                assert await router.relocation.begin(change, table, "somebody")  # and is gone
                processes.replace()
                await eventually(lambda: _has_no_phase(router))
        assert (await router.relocation.table()).shards == 5
        await all_ended(app, completed=len(accepted))
        judge(processes, accepted, "tenant")


async def _has_no_phase(shards: Any) -> bool:
    return not (await shards.relocation.table()).phase


async def test_jobs_move_while_the_broker_is_killed_again_and_again(
    plan_for: Callable[..., LanePlan], server: Server
) -> None:
    plan = plan_for(order="tenant")
    async with at_work(plan, 2) as (processes, app):
        queue = app.queues[QUEUE]
        accepted = await line_up(app, works(0, 40))

        async def outages() -> None:
            for _ in range(3):
                await asyncio.sleep(0.15)
                server.kill()
                await asyncio.to_thread(server.start)

        dying = asyncio.create_task(outages())
        for shards in (2, 3, 4):
            await _persist(lambda shards=shards: queue.reshard(shards))
        await dying
        await eventually(lambda: is_settled(app))
        await all_ended(app, completed=len(accepted))
        assert (await queue.shards()).shards == 4
        judge(processes, accepted, "tenant")


async def _persist(work: Callable[[], Any]) -> None:
    """As an operator does whose broker is away."""
    for _ in range(20):
        try:
            await work()
        except FaenaError:
            await asyncio.sleep(0.1)
        else:
            return


async def test_shards_live_on_several_nodes_of_a_cluster(tmp_path: Path) -> None:
    with ClusterGroup() as cluster:
        await eventually(cluster.is_ready)
        queues = {QUEUE: QueuePlan(retry_wait="60ms")}
        plan = LanePlan(
            url=cluster.url,
            ledger=str(tmp_path / "ledger"),
            queues=queues,
            order="tenant",
            shards=4,
        )
        async with at_work(plan, 2) as (processes, app):
            queue = app.queues[QUEUE]
            async with producing(app) as accepted:
                await processes.lose(10)
                await queue.reshard(6)
                await queue.tenant("t3").dedicate()
            await eventually(lambda: is_settled(app))
            await all_ended(app, completed=len(accepted))
            judge(processes, accepted, "tenant")
            assert len((await queue.shards()).jobs) == 7
            used = {one.port for one in cluster.servers if _has_keys(one)}
            assert len(used) > 1


def _has_keys(server: Server) -> bool:
    with server.client() as client:
        return bool(client.dbsize())
