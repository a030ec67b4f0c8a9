"""A snapshot: all queues of an app at one instant, read once for all who ask."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from faena import Faena, Queue
from tests._support.eventually import eventually
from tests._support.valkey import Server
from tests._support.working import running

FCALL = "cmdstat_fcall"


def working(app: Faena, name: str = "mail", **options: Any) -> tuple[Queue, Any]:
    queue = app.queue(name, **options)

    @queue.task(name=f"{name}.work")
    async def work(number: int) -> None:
        pass

    return queue, work


async def test_every_queue_is_there_with_its_counts_and_totals(app: Faena) -> None:
    mail, work = working(app, concurrency=3)
    working(app, "print")
    await work.enqueue_many(range(5))
    await work.enqueue(5, delay="1h")
    await mail.pause(reason="lunch", by="ana")
    seen = await app.snapshot(max_age="0s")
    found = {queue.queue: queue for queue in seen.queues}
    assert list(found) == ["mail", "print"]
    one = found["mail"]
    assert (one.counts["ready"], one.counts["delayed"], one.depth) == (5, 1, 6)
    assert one.totals["enqueued"] == 6
    assert (one.oldest_us or 0) >= 0
    assert [hold.reason for hold in one.holds] == ["lunch"]
    assert (one.slots, one.workers, one.utilization) == (0, (), None)
    assert (found["print"].depth, found["print"].oldest_us) == (0, None)
    (node,) = seen.nodes
    assert (node.latency_ms or 0) > 0
    assert (node.memory_used or 0) > 0


async def test_workers_tell_how_many_slots_they_have(app: Faena) -> None:
    working(app, concurrency=3)
    working(app, "print", concurrency=20)

    async def are_told() -> bool:
        seen = await app.snapshot(max_age="0s")
        return {queue.queue: queue.slots for queue in seen.queues} == {"mail": 3, "print": 7}

    async with running(app, concurrency=7):
        await eventually(are_told)


async def test_the_tenants_with_most_jobs_are_named_and_the_rest_added_up(
    app: Faena,
) -> None:
    _, work = working(app)
    await work.enqueue_many([0] * 7, tenant="big")
    for number in range(60):
        await work.enqueue_many([0] * 2, tenant=f"t{number}")
    await work.enqueue(0)
    (queue,) = (await app.snapshot(max_age="0s")).queues
    first, *others = queue.tenants
    assert (first.tenant, first.live, first.running) == ("big", 7, 0)
    assert len(others) == 49
    assert queue.other_tenants is not None
    assert queue.other_tenants.live == 11 * 2 + 1
    assert queue.other_tenants.tenant == ""
    (bare,) = (await app.snapshot(max_age="0s", tenants=False)).queues
    assert (bare.tenants, bare.other_tenants) == ((), None)


async def test_shards_are_added_up(app: Faena) -> None:
    _, work = working(app, shards=4)
    for number in range(12):
        await work.enqueue_many(range(3), tenant=f"t{number}")
    (queue,) = (await app.snapshot()).queues
    assert (queue.counts["ready"], queue.totals["enqueued"]) == (36, 36)
    assert sum(tenant.live for tenant in queue.tenants) == 36


async def test_many_who_ask_cost_the_broker_what_one_does(app: Faena, valkey: Server) -> None:
    working(app)
    await app.snapshot(max_age="0s")

    def calls() -> int:
        with valkey.client() as client:
            found = client.info("commandstats")
            return sum(
                one["calls"] for name, one in found.items() if name.startswith("cmdstat_fcall")
            )

    before = calls()
    await app.snapshot(max_age="0s")
    one = calls() - before
    before = calls()
    seen = await asyncio.gather(*(app.snapshot(max_age="0s") for _ in range(50)))
    assert calls() - before <= one
    assert all(each is seen[0] for each in seen)
    before = calls()
    assert await app.snapshot(max_age="1h") is seen[0]
    assert calls() == before


async def test_totals_never_decrease_while_shards_come_and_go(app: Faena) -> None:
    queue, work = working(app, shards=3)
    for tenant in "abcdefgh":
        await work.enqueue_many(range(5), tenant=tenant)
    await app.run_worker(until_empty=True)
    seen: list[dict[str, int]] = []

    async def watch() -> None:
        while True:
            (one,) = (await app.snapshot(max_age="0s", tenants=False)).queues
            seen.append(one.totals)

    watching = asyncio.create_task(watch())
    for shards in (1, 4, 2, 1):
        await queue.reshard(shards, wait="60s")
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    assert len(seen) > 10
    for before, after in itertools.pairwise(seen):
        assert all(after.get(name, 0) >= number for name, number in before.items())
    assert (seen[-1]["enqueued"], seen[-1]["completed"]) == (40, 40)
