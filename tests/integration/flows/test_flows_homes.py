"""Flows whose queues live on several nodes, in several homes, and move while they run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from faena import Faena, Retain, Retry
from tests._support.eventually import eventually
from tests._support.fleet import Clustered
from tests._support.valkey import Server
from tests.integration.flows.conftest import Working

TENANTS = [f"t{number}" for number in range(8)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Clustered]:
    with Clustered() as cluster:
        yield cluster


async def run_all(app: Faena, working: Working, *, reshards: bool) -> None:
    keep = Retain(completed_count=0)
    first = app.queue("first", retry=Retry.never(), retain=keep, fair=True)
    second = app.queue("second", retry=Retry.never(), retain=keep, order="tenant", shards=2)
    done: list[str] = []

    @first.task
    async def begin(tenant: str) -> str:
        done.append(f"begin {tenant}")
        return tenant

    @second.task
    async def go_on(tenant: str) -> str:
        done.append(f"go on {tenant}")
        return tenant

    @second.task
    async def end(_name: str) -> None:
        done.append("end")

    async with working(app):
        plan = app.flow("spread")
        last = [
            plan.add(
                go_on.draft(tenant, tenant=tenant),
                after=[plan.add(begin.draft(tenant, tenant=tenant))],
            )
            for tenant in TENANTS
        ]
        plan.add(end.draft("all", tenant="t0"), after=last)
        flow = await plan.start()
        async with app.group(on_complete=end.draft("group", tenant="t1")) as group:
            for tenant in TENANTS:
                await group.enqueue_many(go_on, [tenant] * 5, tenant=tenant)
        if reshards:
            await first.reshard(3)
            await second.reshard(4)
            await second.tenant("t0").dedicate()
        view = await flow.wait("20s")
        await group.wait("20s")
        await eventually(lambda: done.count("end") == 2, within=20)
    assert view.state == "completed"
    for tenant in TENANTS:
        assert done.count(f"begin {tenant}") == 1
        assert done.count(f"go on {tenant}") == 6
    assert len(done) == 7 * len(TENANTS) + 2


@pytest.mark.timeout(60)
async def test_homes_change_while_flows_run(app: Faena, working: Working, server: Server) -> None:
    await run_all(app, working, reshards=True)


@pytest.mark.timeout(90)
async def test_queues_are_on_several_nodes_of_a_cluster(
    cluster: Clustered, working: Working
) -> None:
    await eventually(cluster.is_ready, within=20)
    async with Faena("flows", cluster.url) as app:
        await run_all(app, working, reshards=False)
