"""Ids that two tenants have chosen, in different shards."""

from __future__ import annotations

import pytest

from faena import Faena, Job, State
from faena.errors import JobNotFound
from faena.sharding.routing_table import index_of
from tests._support.working import Working

TENANTS = [f"t{number}" for number in range(12)]


async def test_a_handle_is_of_its_tenants_job(app: Faena, working: Working) -> None:
    queue = app.queue("mail", fair=True)
    await queue.reshard(2)

    @queue.task
    async def send(text: str, job: Job) -> str:
        return f"{job.tenant}: {text}"

    one, other = apart()
    receipts = {who: await send.enqueue(who, id="order-7", tenant=who) for who in (one, other)}
    async with working(app):
        for who, receipt in receipts.items():
            assert await receipt.handle.result("10s") == f"{who}: {who}"
            for named in (send.handle("order-7", tenant=who), queue.handle("order-7", tenant=who)):
                assert await named.result("10s") == f"{who}: {who}"
            view = await receipt.handle.view()
            assert view is not None
            assert view.tenant == who


async def test_a_handle_changes_its_tenants_job_only(app: Faena) -> None:
    queue = app.queue("mail", fair=True)
    await queue.reshard(2)
    send = queue.task(name="send")(sending)
    one, other = apart()
    kept = await send.enqueue(1, id="order-7", tenant=one, delay="1h")
    mine = (await send.enqueue(1, id="order-7", tenant=other, delay="1h")).handle
    await mine.change(priority="high")
    await mine.promote()
    await mine.cancel()
    await mine.rerun()
    assert str((await mine.explain()).state) == "ready"
    await mine.remove()
    assert await mine.view() is None
    with pytest.raises(JobNotFound):
        await mine.result("1s")
    assert await kept.handle.state() is State.DELAYED


async def test_a_handle_finds_its_job_after_a_move(app: Faena, working: Working) -> None:
    queue = app.queue("mail", fair=True)
    send = queue.task(name="send")(sending)
    receipts = [await send.enqueue(number, tenant=who) for number, who in enumerate(TENANTS)]
    nobody = await send.enqueue(99)
    await queue.reshard(4)
    async with working(app):
        assert [await one.handle.result("10s") for one in receipts] == [*range(len(TENANTS))]
        assert await nobody.handle.result("10s") == 99


async def sending(number: int) -> int:
    return number


def apart() -> tuple[str, str]:
    """Two tenants in different shards of two, the one in the first shard first."""
    by_shard = {index_of(f"@{tenant}", 2): tenant for tenant in TENANTS}
    return by_shard[0], by_shard[1]
