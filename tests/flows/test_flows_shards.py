"""Flows whose queues live on several nodes, in several shards, and move while they run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from faena import Faena, Flow, Group, Job, Retain, Retry, Task
from tests._support.eventually import eventually
from tests._support.server_group import ClusterGroup
from tests.flows.conftest import Working

TENANTS = [f"t{number}" for number in range(8)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[ClusterGroup]:
    with ClusterGroup() as cluster:
        yield cluster


class Spread:
    """Two queues, of which one has shards, and what their tasks did."""

    def __init__(self, app: Faena) -> None:
        self.app = app
        self.done: list[str] = []
        keep = Retain(completed_count=0)
        self.first = app.queue("first", retry=Retry.never(), retain=keep, fair=True)
        self.second = app.queue(
            "second", retry=Retry.never(), retain=keep, order="tenant", shards=2
        )
        self.begin: Task[str, None] = self.first.task(name="begin")(self._note)
        self.go_on: Task[str, None] = self.second.task(name="go_on")(self._note)

    async def _note(self, word: str, job: Job) -> None:
        self.done.append(f"{job.task} {word}")

    async def start(self) -> tuple[Flow, Group]:
        """A flow with a branch for each tenant, and a group of theirs."""
        plan = self.app.flow("spread")
        last = [
            plan.add(
                self.go_on.draft(tenant, tenant=tenant),
                after=[plan.add(self.begin.draft(tenant, tenant=tenant))],
            )
            for tenant in TENANTS
        ]
        plan.add(self.go_on.draft("end", tenant="t0"), after=last)
        flow = await plan.start()
        async with self.app.group(on_complete=self.go_on.draft("end", tenant="t1")) as group:
            for tenant in TENANTS:
                await group.enqueue_many(self.go_on, [tenant] * 5, tenant=tenant)
        return flow, group

    async def finish(self, flow: Flow, group: Group) -> None:
        """All is done, and nothing twice."""
        view = await flow.wait("20s")
        assert view.state == "completed", [(n.name, n.state, n.words) for n in view.nodes]
        await group.wait("20s")
        await eventually(lambda: self.done.count("go_on end") == 2)
        for tenant in TENANTS:
            assert self.done.count(f"begin {tenant}") == 1
            assert self.done.count(f"go_on {tenant}") == 6
        assert len(self.done) == 7 * len(TENANTS) + 2


async def test_shards_change_while_flows_run(app: Faena, working: Working) -> None:
    spread = Spread(app)
    async with working(app):
        flow, group = await spread.start()
        await spread.first.reshard(3)
        await spread.second.reshard(4)
        await spread.second.tenant("t0").dedicate()
        await spread.finish(flow, group)


async def test_queues_are_on_several_nodes_of_a_cluster(
    cluster: ClusterGroup, working: Working
) -> None:
    await eventually(cluster.is_ready)
    async with Faena("flows", cluster.url) as app:
        spread = Spread(app)
        async with working(app):
            await spread.finish(*await spread.start())
