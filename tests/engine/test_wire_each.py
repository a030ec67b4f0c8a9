"""Many calls of one script in few round trips."""

from __future__ import annotations

import pytest

from faena.engine import Wire
from faena.engine.calls.together import ask_each
from faena.engine.keys import Keys
from faena.engine.script_library import load
from faena.errors import StoreError
from tests._support.rig import Rig
from tests._support.valkey import Server


async def test_answers_come_in_the_order_of_the_shards(rig: Rig) -> None:
    await rig.add("a", "b")
    shards = [f"other{number}" for number in range(24)]
    shards.insert(13, rig.queue)
    replies = await ask_each(rig.engine, "snapshot", shards)
    waiting = [int(dict(zip(one[1][::2], one[1][1::2], strict=True))[b"ready"]) for one in replies]
    assert waiting == [2 if shard == rig.queue else 0 for shard in shards]
    assert await ask_each(rig.engine, "snapshot", []) == []


@pytest.mark.parametrize("number", [1, 25])
async def test_a_server_that_has_lost_the_library_is_given_it(
    rig: Rig, valkey: Server, number: int
) -> None:
    await rig.add("a")
    with valkey.client() as client:
        client.function_flush()
    replies = await ask_each(rig.engine, "snapshot", [rig.queue] * number)
    assert len(replies) == number
    assert all(one[1] == replies[0][1] for one in replies)


async def test_a_call_that_is_refused_is_told_as_it_is_alone(rig: Rig, wire: Wire) -> None:
    await rig.add("a")
    with pytest.raises(StoreError, match="minute, hour or total"):
        await ask_each(rig.engine, "statistics", [rig.queue] * 3, unit="day", first=0, last=1)


async def test_only_the_refused_call_of_several_fails(wire: Wire, namespace: str) -> None:
    """The first ones are answered, and the error is that of the one with a wrong argument."""
    script, prefix = load("statistics"), Keys(namespace, "q").prefix
    right: list[str | int] = ["", "minute", 0, 1]
    wrong: list[str | int] = ["", "day", 0, 1]
    with pytest.raises(StoreError):
        await wire.run_each(script, [(prefix, right), (prefix, wrong)], patience_s=1)
    assert len(await wire.run_each(script, [(prefix, right)] * 2, patience_s=1)) == 2
