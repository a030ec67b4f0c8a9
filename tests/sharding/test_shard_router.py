"""What a program knows of the shards of its queues, and that nothing of it outlives the app."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from faena import Faena
from faena.engine.envelope import NewJob, seal
from faena.errors import ShardsChanged
from faena.options import Durability, QueueOptions
from faena.producing.batcher import Batcher, CallIds, Sent
from faena.producing.sender import Sender
from faena.sharding import router as routing
from faena.sharding.router import Routers
from faena.sharding.table import Change, Table, index_of
from tests._support.eventually import PATIENCE_S
from tests._support.rig import Rig


def _run_now(coroutine: Coroutine[Any, Any, None]) -> None:
    """In this very turn of the loop: it has nothing to wait for."""
    with pytest.raises(StopIteration):
        coroutine.send(None)


async def test_who_hears_of_a_look_after_the_end_begins_no_work(rig: Rig) -> None:
    moving = ("epoch", 2, "shards", 2, "before", 1, "phase", "moving", "change", "shards 2")
    await rig.engine.command("HSET", "q", "shards", *moving)
    routers = Routers(rig.engine, {"q": QueueOptions(fair=True)})
    serving = asyncio.create_task(routers.of("q").serving())
    await asyncio.sleep(0)
    (look,) = (task for task in asyncio.all_tasks() if "Router._look" in repr(task))
    look.add_done_callback(lambda _: _run_now(routers.close()))  # before the waiter is told
    assert [shard.name for shard in await serving] == ["q", "q/1"]
    left = [task for task in asyncio.all_tasks() if "Router._work" in repr(task)]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    assert left == []


async def test_jobs_that_were_routed_by_different_tables_do_not_share_a_call(rig: Rig) -> None:
    await rig.declare()
    await rig.edit(epoch=2)
    batcher = Batcher(rig.engine, "q", CallIds(), Durability())
    jobs = [NewJob(job, seal(10, {}, b"{}"), {}) for job in "abc"]
    first, new, old = await asyncio.gather(
        *(batcher.send([job], epoch) for job, epoch in zip(jobs, (2, 2, 1), strict=True)),
        return_exceptions=True,
    )
    assert isinstance(first, Sent)
    assert isinstance(new, Sent)
    assert isinstance(old, ShardsChanged)
    assert set((await rig.dump())["specs"]) == {"a", "b"}


async def test_a_list_is_as_durable_as_it_is_at_its_weakest_shard(
    app: Faena, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_to = Sender._send_to

    async def half(self: Sender, shard: str, jobs: Any, durability: Durability, epoch: int) -> Sent:
        answers, plain = await send_to(self, shard, jobs, Durability(), epoch)
        return Sent(answers, plain if shard == "q" else durability)

    monkeypatch.setattr(Sender, "_send_to", half)

    @app.queue("q", shards=2).task
    async def work() -> None: ...

    at = {index_of(f"@{tenant}", 2): tenant for tenant in "abcdefgh"}
    drafts = [work.draft(tenant=at[shard]) for shard in (0, 1)]
    receipts = await work.enqueue_many(drafts, durability="fsynced")
    assert [one.durability for one in receipts] == ["memory", "memory"]


class Refusing:
    """What shards refuse so often, each time after twenty seconds of a clock of its own."""

    def __init__(self, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self._times = times
        self._now = 0.0
        self.epochs: list[int] = []
        self.pauses: list[float] = []
        monkeypatch.setattr(routing, "time", SimpleNamespace(monotonic=lambda: self._now))
        monkeypatch.setattr(routing, "asyncio", SimpleNamespace(sleep=self._pause))

    async def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    async def __call__(self, table: Table) -> str:
        self.epochs.append(table.epoch)
        self._now += 20
        if len(self.epochs) <= self._times:
            raise ShardsChanged("others are there")
        return "done"


async def test_shards_that_refuse_one_table_are_asked_again_for_half_a_minute(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    router = Routers(rig.engine, {"q": QueueOptions(fair=True)}).of("q")
    once = Refusing(1, monkeypatch)
    assert await router.on_current_shards(once) == "done"
    assert once.epochs == [0, 0]
    assert len(once.pauses) == 1  # nothing is new, so it is not asked at once
    always = Refusing(5, monkeypatch)
    with pytest.raises(ShardsChanged):
        await router.on_current_shards(always)
    assert always.epochs == [0, 0]


async def test_shards_that_change_again_and_again_are_followed_for_longer(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    router = Routers(rig.engine, {"q": QueueOptions(fair=True)}).of("q")
    refusing = Refusing(5, monkeypatch)

    async def move(table: Table) -> str:
        await rig.engine.command("HSET", "q", "shards", "epoch", table.epoch + 1, "shards", 1)
        return await refusing(table)

    assert await router.on_current_shards(move) == "done"
    assert refusing.epochs == [0, 1, 2, 3, 4, 5]
    assert refusing.pauses == []


async def test_who_waits_for_a_change_that_another_has_left_carries_on_with_it(rig: Rig) -> None:
    await rig.declare()
    routers = Routers(rig.engine, {"q": QueueOptions(fair=True)})
    router = routers.of("q")
    assert await router.relocation.begin(Change(shards=2), await router.look(), "ops")
    table = await router.settled(PATIENCE_S)
    await routers.close()
    assert await rig.engine.obliterate("q/1", 1000, force=True) == "DONE"
    assert (table.shards, table.phase) == (2, "")
