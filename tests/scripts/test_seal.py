"""seal.lua"""

from __future__ import annotations

from tests._support.rig import Rig
from tests._support.transfer import Transfer


async def test_a_shard_keeps_the_latest_epoch_that_was_sealed(rig: Rig, transfer: Transfer) -> None:
    await transfer.moving.seal("q", 10)
    assert await rig.dump() == {"clock": {"sealed": 10}}
    await transfer.moving.seal("q", 9)
    await transfer.moving.seal("q", 10)
    assert await rig.dump() == {"clock": {"sealed": 10}}
    await transfer.moving.seal("q", 11)
    assert await rig.dump() == {"clock": {"sealed": 11}}


async def test_lanes_that_were_barred_before_stay_so_and_are_admitted(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.add("a", lane="@a")
    await transfer.hand_over("@a")
    for shard in ("q", "q/1"):
        await transfer.moving.seal(shard, 1)
    assert await transfer.carry("a") == 1
    assert await transfer.thaw("@a") == []
    assert [claim.id for claim in (await transfer.target.turn(9)).claimed] == ["a"]
