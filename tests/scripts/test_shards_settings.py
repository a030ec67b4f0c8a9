"""conf.lua, configure.lua and enqueue.lua where a queue has several shards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from faena.engine.calls.transfer import TransferCalls
from faena.errors import ConfigError, ShardsChanged
from faena.limits import Limit
from faena.options import Backpressure, Retain
from faena.outcomes import Completed
from tests._support.rig import Rig
from tests._support.transfer import Transfer

SHARDS = 3
JOB = b"010 lane=@a\n{}"


async def each_shard(rig: Rig, act: Callable[[], Awaitable[int]], **options: Any) -> list[int]:
    """What an act comes to in each of three shards of a queue with these options."""
    found: list[int] = []
    for shard in range(SHARDS):
        await rig.declare(**options)
        await stand(rig, shard)
        found.append(await act())
        await rig.obliterate()
        rig.clock.go(3600)  # what a tenant has claimed is kept for its time
    return found


async def stand(rig: Rig, shard: int, shards: int = SHARDS, epoch: int = 1) -> None:
    """Tell a shard its place."""
    place = {"epoch": str(epoch), "shards": str(shards), "shard": str(shard)}
    await TransferCalls(rig.engine).set_standing(rig.queue, place)


async def fill(rig: Rig, number: int, *, epoch: int = 1) -> list[str]:
    jobs = [(f"j{n:03d}", JOB) for n in range(number)]
    answers = await rig.engine.enqueue(rig.queue, "p", rig.next_call(), jobs, epoch=epoch)
    return [answer.code for answer in answers]


@pytest.mark.parametrize("most", [3, 7, 8, 9])
@pytest.mark.parametrize("bound", ["max_running", "limits", "hard"])
async def test_the_parts_of_a_bound_add_up(rig: Rig, bound: str, most: int) -> None:
    options: dict[str, Any] = {
        "max_running": {"max_running": most},
        "limits": {"limits": [Limit(f"{most}/h"), Limit(f"{10 * most}/day")]},
        "hard": {"backpressure": Backpressure(soft=most - 1, hard=most)},
    }

    async def granted() -> int:
        codes = await fill(rig, 20)
        taken_in = len(codes) - codes.count("OVERLOADED")
        return taken_in if bound == "hard" else len((await rig.turn(50)).claimed)

    parts = await each_shard(rig, granted, **options[bound])
    assert parts == sorted((most // 3 + (n < most % 3) for n in range(3)), reverse=True)
    assert sum(parts) == most


async def test_a_warning_comes_at_a_part_too(rig: Rig) -> None:
    async def warned_at() -> int:
        return (await fill(rig, 9)).index("SLOWED")

    press = Backpressure(soft=10, hard=100)
    assert await each_shard(rig, warned_at, backpressure=press) == [4, 3, 3]


@pytest.mark.parametrize("bound", ["completed_count", "completed_bytes"])
async def test_a_shard_keeps_as_many_finished_jobs_as_the_queue_may(rig: Rig, bound: str) -> None:
    async def left() -> int:
        await fill(rig, 9)
        claimed = (await rig.turn(9)).claimed
        rig.clock.go(1)  # a bound on bytes counts from then
        await rig.turn(0, *((claim.id, claim.lease, Completed()) for claim in claimed))
        await rig.turn(0, is_sweep=True)
        return len(await rig.states())

    most = {"completed_count": 7, "completed_bytes": 7 * len(JOB)}[bound]
    assert await each_shard(rig, left, retain=Retain(**{bound: most})) == [7] * SHARDS


async def test_bounds_of_a_tenant_are_not_divided(rig: Rig) -> None:
    async def claimed() -> int:
        await fill(rig, 9)
        return len((await rig.turn(9)).claimed)

    bounds: dict[str, Any] = {"tenant_max_running": 5, "tenant_limits": [Limit("4/h")]}
    assert await each_shard(rig, claimed, **bounds) == [4, 4, 4]


async def test_a_shard_of_its_own_has_the_whole(rig: Rig) -> None:
    await rig.declare(max_running=7)
    await stand(rig, 1)
    await TransferCalls(rig.engine).set_standing("q", {"epoch": "2", "shards": "", "shard": ""})
    await fill(rig, 9, epoch=2)
    assert len((await rig.turn(9)).claimed) == 7


async def test_another_number_of_shards_counts_at_the_next_call(rig: Rig) -> None:
    await rig.declare(max_running=6)
    await fill(rig, 9)
    await stand(rig, 0, shards=3)
    assert len((await rig.turn(9)).claimed) == 2
    await stand(rig, 0, shards=2, epoch=2)
    assert len((await rig.turn(9)).claimed) == 1


@pytest.mark.parametrize(
    ("name", "value", "least"),
    [
        ("max_running", "2", "3"),
        ("hard", "2", "3"),
        ("limits", "2/1000000", "3/1000000"),
        ("limits", "9/1000000 2/60000000", "9/1000000 3/60000000"),
    ],
)
async def test_a_bound_must_leave_every_shard_something(
    rig: Rig, name: str, value: str, least: str
) -> None:
    await rig.declare()
    await stand(rig, 0)
    await rig.remember()
    with pytest.raises(ConfigError, match=f"^{name} must be a valid setting"):
        await rig.edit(**{"completed_count": 5, name: value})
    assert await rig.is_untouched()
    await rig.edit(**{name: least})
    assert (await rig.dump())["conf"][name] == least


async def test_what_is_not_divided_may_be_as_small_as_ever(rig: Rig) -> None:
    await rig.declare()
    await stand(rig, 0)
    await rig.edit(tenant_limits="1/1000000", tenant_max_running=1, completed_count=1, soft=1)


async def test_an_older_epoch_is_not_believed_about_the_place_of_a_shard(rig: Rig) -> None:
    await rig.declare(max_running=6)
    await stand(rig, 2, shards=4, epoch=10)
    await rig.remember()
    await stand(rig, 0, shards=2, epoch=9)
    assert await rig.is_untouched()
    await stand(rig, 2, shards=4, epoch=10)
    assert await rig.is_untouched()
    await rig.declare(max_running=8)  # code knows nothing of shards
    conf = (await rig.dump())["conf"]
    assert (conf["max_running"], conf["epoch"], conf["shards"]) == ("8", "10", "4")


async def test_settings_that_come_with_an_older_epoch_are_settings_still(rig: Rig) -> None:
    await rig.declare()
    await stand(rig, 1, epoch=2)
    place = {"epoch": "1", "shards": "9", "max_running": "12"}
    await TransferCalls(rig.engine).set_standing("q", place)
    conf = (await rig.dump())["conf"]
    assert (conf["epoch"], conf["shards"], conf["max_running"]) == ("2", "3", "12")


@pytest.mark.parametrize("known", [0, 1])
async def test_who_knows_an_older_epoch_enqueues_nothing(rig: Rig, known: int) -> None:
    await rig.declare()
    await stand(rig, 0, epoch=2)
    await rig.remember()
    with pytest.raises(ShardsChanged):
        await fill(rig, 2, epoch=known)
    assert await rig.is_untouched()


@pytest.mark.parametrize("known", [2, 3])
async def test_who_knows_it_or_a_later_one_does(rig: Rig, known: int) -> None:
    await rig.declare()
    await stand(rig, 0, epoch=2)
    assert await fill(rig, 2, epoch=known) == ["CREATED", "CREATED"]


async def test_what_was_enqueued_before_is_answered_again_as_it_was(rig: Rig) -> None:
    (answer,) = await rig.add("a", call="one", lane="@a")
    await stand(rig, 0, epoch=2)
    assert await rig.add("a", call="one", lane="@a") == [answer]
    with pytest.raises(ShardsChanged):
        await rig.add("a", call="two", lane="@a")


async def test_who_announces_an_earlier_change_bars_nothing(transfer: Transfer) -> None:
    await transfer.know_of_change(epoch=2)
    await transfer.target.remember()
    with pytest.raises(ShardsChanged):
        await transfer.moving.freeze_out("q/1", 1, ["@a"])
    with pytest.raises(ShardsChanged):
        await transfer.moving.freeze_in("q/1", 1, "0", {"@a": b""})
    assert await transfer.target.is_untouched()
    await transfer.hand_over("@a", epoch=2)
