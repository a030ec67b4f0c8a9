"""What only a whole app knows of a job: its batch, its move to another shard, its database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from faena import Faena
from faena.inspection.explainer import Explainer
from faena.inspection.past import PastJobs
from faena.sharding.router import Routers
from tests._support.eventually import eventually
from tests._support.rig import Rig
from tests._support.transfer import Transfer
from tests._support.working import Working


@pytest.fixture
async def transfer(rig: Rig) -> AsyncIterator[Transfer]:
    transfer = Transfer(rig)
    yield transfer
    await transfer.target.obliterate()


async def test_a_job_whose_worker_gathers_a_batch_says_until_when(
    app: Faena, working: Working
) -> None:
    called = asyncio.Event()

    @app.queue("mail", concurrency=10).batch(size=5, wait="10m")
    async def send(numbers: list[int]) -> None:
        called.set()

    first = await send.enqueue(1)
    async with working(app):

        async def is_gathering() -> bool:
            told = await first.handle.explain()
            return [one.code for one in told.reasons] == ["running", "gathering"]

        await eventually(is_gathering)
        told = await first.handle.explain()
        assert "the batch is full or its wait is over" in told.next
        assert told.past is not None
        assert told.reasons[1].until == (told.past.at or 0) + 600_000_000
        await send.enqueue_many([2, 3, 4, 5])
        await asyncio.wait_for(called.wait(), 60)


async def test_a_job_on_its_way_between_shards_says_so(rig: Rig, transfer: Transfer) -> None:
    await rig.add("job", lane="@a")
    await rig.engine.command("HSET", "q", "shards", "shards", "2", "epoch", "1")
    await transfer.hand_over("@a")
    batch = await transfer.take_out("job")
    routers = Routers(rig.engine, {"q": None})
    explainer = Explainer(rig.engine, routers, PastJobs())
    told = await explainer.explain("q", "job")
    start = told.expected_start
    assert start is not None
    assert [one.code for one in told.reasons] == ["moving"]
    assert (start.basis, start.at) == ("unknown", None)
    assert told.next == ("the move to its shard goes on",)
    await transfer.take_in(batch)
    told = await explainer.explain("q", "job")
    assert [one.code for one in told.reasons] == ["unserved", "tenant_moving"]
    await transfer.take_out()
    await transfer.thaw("@a")
    await transfer.target.turn(is_sweep=True)
    assert [one.code for one in (await explainer.explain("q", "job")).reasons] == ["turn"]
    assert await transfer.target.claim()
    await routers.close()
    await rig.engine.command("DEL", "q", "shards")
