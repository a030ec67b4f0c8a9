"""retire.lua"""

from __future__ import annotations

import pytest

from faena.engine.calls.flows import FlowCalls
from faena.engine.calls.transfer import TransferCalls
from faena.engine.envelope import seal
from faena.errors import ShardsChanged
from faena.limits import Limit
from tests._support.rig import SECOND, Rig


async def stand(rig: Rig, epoch: int) -> TransferCalls:
    moving = TransferCalls(rig.engine)
    await rig.declare(tenant_limits=[Limit("5/s")])
    await moving.set_standing("q", {"epoch": str(epoch)})
    return moving


async def test_a_shard_is_removed_and_its_epoch_kept_for_a_while(rig: Rig) -> None:
    moving = await stand(rig, 2)
    await rig.engine.tenant("q", "@a", {"weight": "2"}, epoch=2, by="ops")
    await rig.turn(1, is_sweep=True)
    assert await moving.retire("q", 2)
    left = await rig.dump()
    assert left["conf"] == {"epoch": "2", "retired": "2"}
    assert set(left) == left.mortal
    for name in ("conf", "clock"):  # with the digest of the settings, which no dump shows
        assert 0 < await rig.engine.command("TTL", "q", name) <= 86_400


@pytest.mark.parametrize("epoch", [1, 3])
async def test_a_shard_of_another_epoch_is_let_alone(rig: Rig, epoch: int) -> None:
    moving = await stand(rig, 2)
    await rig.remember()
    assert not await moving.retire("q", epoch)
    assert await rig.is_untouched()


async def test_a_shard_with_a_job_is_let_alone(rig: Rig) -> None:
    moving = await stand(rig, 2)
    await rig.engine.enqueue("q", "p", rig.next_call(), [("a", b"010\n{}")], epoch=2)
    await rig.remember()
    assert not await moving.retire("q", 2)
    assert await rig.is_untouched()


async def test_a_shard_with_messages_is_let_alone_until_they_are_fetched(rig: Rig) -> None:
    moving, mail = await stand(rig, 2), FlowCalls(rig.engine)
    await rig.engine.enqueue(
        "q", "p", rig.next_call(), [("a", seal(10, {"tells": "o:@db:job:9a"}, b"{}"))], epoch=2
    )
    await rig.engine.remove("q", ["a"])
    assert not await moving.retire("q", 2)
    (message,) = await mail.messages("q", "@db")
    assert await mail.delivered("q", "@db", message.id) == 0
    assert await moving.retire("q", 2)


async def test_who_has_not_heard_of_it_is_refused_also_when_it_declares_the_shard(rig: Rig) -> None:
    moving = await stand(rig, 2)
    await moving.retire("q", 2)
    for _ in range(2):
        with pytest.raises(ShardsChanged):
            await rig.add("a")
        await rig.turn(1)  # a worker that has not heard of it either
    left = await rig.dump()
    assert "conf" in left.mortal
    assert await rig.states() == {}


async def test_a_shard_that_is_needed_again_is_there_to_stay(rig: Rig) -> None:
    moving = await stand(rig, 2)
    await moving.retire("q", 2)
    await stand(rig, 3)
    rig.clock.now += SECOND
    await rig.engine.enqueue("q", "p", rig.next_call(), [("a", b"010\n{}")], epoch=3)
    assert await rig.states() == {"a": "ready"}
    assert not {"conf", "clock"} & (await rig.dump()).mortal


async def test_who_slept_over_the_end_of_the_change_does_not_begin_it_anew(rig: Rig) -> None:
    moving = await stand(rig, 2)
    await moving.retire("q", 2)
    await moving.set_standing("q", {"epoch": "2"})
    with pytest.raises(ShardsChanged):
        await moving.freeze_out("q", 2, ["@a"])
    assert "moves" not in await rig.dump()
    await moving.freeze_out("q", 3, ["@a"])
    assert (await rig.dump())["moves"] == {"@a": "out 3"}
