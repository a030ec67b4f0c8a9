"""shards.lua"""

from __future__ import annotations

import asyncio

import pytest

from faena.engine.calls.transfer import TransferCalls
from faena.sharding.routing_table import Change, Table, read_table
from tests._support.rig import T0, Rig


async def table(rig: Rig) -> Table:
    return read_table(await TransferCalls(rig.engine).table("q"))


async def decide(rig: Rig, verb: str, epoch: int, *names: str, **named: str | int) -> bool:
    return await TransferCalls(rig.engine).decide("q", verb, epoch, *names, **named)


async def change(rig: Rig, epoch: int, what: str) -> None:
    """From the first word to the last."""
    assert await decide(rig, "begin", epoch, change=what, by="ops")
    assert await decide(rig, "publish", epoch)
    assert await decide(rig, "finish", epoch + 1)


async def test_a_change_is_announced_under_the_epoch_that_was(rig: Rig) -> None:
    assert await decide(rig, "begin", 0, change="shards 4", by="ops")
    assert (await rig.dump())["shards"] == {
        "epoch": "0",
        "phase": "announced",
        "change": "shards 4",
        "by": "ops",
        "at": str(T0),
        "edited": "1",
    }
    assert (await table(rig)).shards == 1


async def test_it_is_published_under_the_next_one_and_tells_what_was(rig: Rig) -> None:
    await decide(rig, "begin", 0, change="shards 4", by="ops")
    coming = (await table(rig)).following()
    assert await decide(rig, "publish", 0)
    assert await table(rig) == coming
    assert (coming.epoch, coming.shards, coming.before, coming.phase) == (1, 4, 1, "moving")
    assert coming.former() == Table(epoch=0)


async def test_nothing_is_left_of_a_finished_change_but_what_it_came_to(rig: Rig) -> None:
    await change(rig, 0, "shards 4")
    assert (await rig.dump())["shards"] == {
        "epoch": "1",
        "shards": "4",
        "edited": "1",
        "moved": str(T0),
    }


async def test_a_number_that_somebody_has_set_is_kept_apart_from_what_code_asks_for(
    rig: Rig,
) -> None:
    assert await decide(rig, "begin", 0, change="shards 4", by="code")
    assert await decide(rig, "publish", 0)
    assert await decide(rig, "finish", 1)
    assert not (await table(rig)).is_edited
    await change(rig, 1, "own @acme")
    assert not (await table(rig)).is_edited
    await change(rig, 2, "shards 2")
    await change(rig, 3, "shared @acme")
    assert await table(rig) == Table(epoch=4, shards=2, is_edited=True, moved_at_us=T0)
    assert await decide(rig, "restore", 9, "edited", number=2)
    assert await table(rig) == Table(epoch=9, shards=2, is_edited=True)
    assert await decide(rig, "reset", 0)
    assert await decide(rig, "reset", 0)
    assert (await rig.dump())["shards"] == {"epoch": "9", "shards": "2"}


async def test_a_lane_gets_a_shard_and_gives_it_back(rig: Rig) -> None:
    await change(rig, 0, "own @acme")
    await change(rig, 1, "own @x/ü")
    assert (await table(rig)).own == {"@acme", "@x/ü"}
    await change(rig, 2, "shared @acme")
    assert await table(rig) == Table(epoch=3, own=frozenset({"@x/ü"}), moved_at_us=T0)


async def test_a_shard_that_is_given_up_is_listed_until_it_is_retired(rig: Rig) -> None:
    await change(rig, 0, "own @acme")
    assert await decide(rig, "begin", 1, change="shared @acme", by="ops")
    assert await decide(rig, "publish", 1)
    assert await decide(rig, "finish", 2, "q/@acme")
    transfer = TransferCalls(rig.engine)
    await transfer.set_standing("q/@acme", {"epoch": "2"})
    assert await transfer.given_up("q") == {"q/@acme": 2}
    assert await transfer.retired("q") == ["q/@acme"]
    assert 0 < await rig.engine.command("TTL", "q", "retired_messages") <= 7 * 86_400
    assert await transfer.retire("q/@acme", 2)
    assert await transfer.given_up("q") == {}
    assert await transfer.retired("q") == ["q/@acme"]


async def test_tenants_named_like_what_the_table_says_are_tenants(rig: Rig) -> None:
    words = ("epoch", "shards", "phase", "change", "before", "by", "at", "moved", "edited")
    for epoch, name in enumerate(words):
        await change(rig, epoch, f"own @{name}")
    now = await table(rig)
    assert (now.epoch, now.shards, now.phase, len(now.own)) == (9, 1, "", 9)


@pytest.mark.parametrize("verb", ["begin", "publish", "finish"])
async def test_every_step_is_taken_once(rig: Rig, verb: str) -> None:
    steps = {"begin": 0, "publish": 0, "finish": 1}
    for step, epoch in steps.items():
        assert await decide(rig, step, epoch, change="shards 2", by="ops")
        if step == verb:
            break
    await rig.remember()
    assert not await decide(rig, verb, steps[verb], change="shards 2", by="ops")
    assert await rig.is_untouched()


@pytest.mark.parametrize(("verb", "epoch"), [("publish", 0), ("finish", 0), ("begin", 1)])
async def test_a_step_out_of_order_changes_nothing(rig: Rig, verb: str, epoch: int) -> None:
    assert not await decide(rig, verb, epoch, change="shards 2", by="ops")
    assert await rig.dump() == {}


async def test_a_change_cannot_begin_while_another_is_under_way(rig: Rig) -> None:
    await decide(rig, "begin", 0, change="shards 2", by="ops")
    assert not await decide(rig, "begin", 0, change="shards 3", by="eve")
    await decide(rig, "publish", 0)
    assert not await decide(rig, "begin", 1, change="shards 3", by="eve")
    assert not await decide(rig, "finish", 0)
    assert (await table(rig)).change == Change(shards=2)


async def test_a_refusal_tells_how_it_stands(rig: Rig) -> None:
    await change(rig, 0, "shards 2")
    answer = await rig.engine.ask("shards", "q", verb="publish", epoch=0)
    assert answer[0] == b"STALE"
    assert dict(zip(answer[1::2], answer[2::2], strict=True)) == {
        b"epoch": b"1",
        b"shards": b"2",
        b"edited": b"1",
        b"moved": str(T0).encode(),
    }


async def test_of_two_at_once_one_begins(rig: Rig) -> None:
    begun = await asyncio.gather(
        *(decide(rig, "begin", 0, change=f"shards {number}", by="ops") for number in range(2, 6))
    )
    assert sorted(begun) == [False, False, False, True]


async def test_a_table_that_was_lost_is_restored_by_whoever_knows_it(rig: Rig) -> None:
    assert await decide(rig, "restore", 5, "@acme", number=3)
    known = Table(epoch=5, shards=3, own=frozenset({"@acme"}))
    assert await table(rig) == known
    for epoch in (4, 5):  # nobody who knows less, or the same, is believed
        assert not await decide(rig, "restore", epoch, number=9)
    assert await table(rig) == known
