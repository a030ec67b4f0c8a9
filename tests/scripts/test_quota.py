"""quota.lua: claims of other shards that count here."""

from __future__ import annotations

import pytest

from faena import Limit
from faena.engine.calls.transfer import Claims, TransferCalls
from faena.errors import ShardsChanged
from tests._support.rig import SECOND, T0, Rig


async def test_claims_of_others_count_until_they_leave_the_window(rig: Rig) -> None:
    await rig.declare(limits=[Limit("5/10s")])
    await rig.add(*"abcdefgh")
    moving = TransferCalls(rig.engine)
    rig.clock.go(9)
    assert len((await rig.turn(2)).claimed) == 2
    claims = [Claims(T0 - 2 * SECOND, 1), Claims(T0 + SECOND, 2)]
    for _ in range(2):  # somebody else does it again
        await moving.add_claims("q", 3, 10 * SECOND, claims)
    assert await moving.claims("q", 10 * SECOND) == [
        Claims(T0 + SECOND, 2),
        Claims(T0 + 9 * SECOND, 2),
    ]
    assert len((await rig.turn(9)).claimed) == 1
    rig.clock.go(2)
    assert len((await rig.turn(9)).claimed) == 2


async def test_nothing_is_counted_after_the_change_is_published(rig: Rig) -> None:
    await rig.declare(limits=[Limit("5/10s")])
    moving = TransferCalls(rig.engine)
    await moving.seal("q", 3)
    with pytest.raises(ShardsChanged):
        await moving.add_claims("q", 3, 10 * SECOND, [Claims(T0, 1)])
    assert await moving.claims("q", 10 * SECOND) == []
