"""What a program knows of the shards of its queues, and that nothing of it outlives the app."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from faena.options import QueueOptions
from faena.sharding.router import Routers
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
