"""`faena audit` of queues in which everything is under way that a program can begin."""

from __future__ import annotations

import asyncio

from faena import Discard, Faena, Retry
from faena.inspection.audit import audit
from tests._support.eventually import eventually
from tests.flows.conftest import Working


async def test_flows_groups_schedules_redrives_and_dedicated_tenants_are_in_order(
    app: Faena, working: Working
) -> None:
    queue = app.queue("all", retry=Retry.never(), fair=True)
    later = app.queue("later", retry=Retry.never())
    failing = True

    @queue.task
    async def work(number: int) -> int:
        if number < 0 and failing:
            raise Discard("no")
        return number

    @later.task
    async def wait(number: int) -> int:
        return number

    app.schedule("nightly", work, cron="0 3 * * *", payload=1)
    async with working(app, queues=["all"]):
        done = await app.chain(work.draft(1), work.draft(2)).start()
        begun = await app.chain(work.draft(1), wait.draft(2)).start()
        async with app.group(on_complete=wait.draft(3)) as group:
            await group.enqueue_many(work, [1, 2, 3], tenant="acme")
        async with app.group(id="open") as opened:
            await opened.enqueue(wait, 1)
            assert (await done.wait("10s")).state == "completed"
            await group.wait("10s")
            await work.enqueue_many([-1, -2], tenant="acme")
            await eventually(lambda: _dead(app, 2))
            await queue.tenant("acme").dedicate()
            failing = False
            redrive = asyncio.create_task(app.dead_letters.redrive("all", rate="1/h"))
            await eventually(lambda: _has_moved(app))
            await work.enqueue(5, tenant="acme", delay="1h")
            found = await _audit_all(app)
            redrive.cancel()
        assert (await begun.view()).state == "running"
    assert found == {"all": [], "all/@acme": [], "later": []}


async def _dead(app: Faena, number: int) -> bool:
    return (await app.queues["all"].counts())["dead"] == number


async def _has_moved(app: Faena) -> bool:
    return any(one.moved for one in await app.dead_letters.redrives("all"))


async def _audit_all(app: Faena) -> dict[str, list[str]]:
    runtime = await app.runtime()
    shards = [name for queue in app.queues for name in await runtime.routers.of(queue).names()]
    return {shard: [str(one) for one in await audit(runtime.engine, shard)] for shard in shards}
