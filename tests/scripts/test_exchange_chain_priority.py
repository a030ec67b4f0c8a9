"""The head of a chain that gets another priority keeps its turn and its place."""

from __future__ import annotations

from faena.outcomes import Completed, Released
from tests._support.rig import Rig

CHAIN = {"lane": "@t", "chain": "t/t"}


async def test_a_head_with_another_priority_keeps_its_place(rig: Rig) -> None:
    await rig.add("a", "b", **CHAIN)
    before = (await rig.dump()).get("lane:@t")
    (claim,) = (await rig.turn(10)).claimed
    await rig.turn(0, (claim.id, claim.lease, Released(priority=50)))
    after = await rig.dump()
    assert after.get("lane:@t") == before
    ran = []
    for _ in range(2):
        (claim,) = (await rig.turn(10)).claimed
        ran.append((claim.id, claim.priority))
        await rig.turn(0, (claim.id, claim.lease, Completed()))
    assert [job for job, _ in ran] == ["a", "b"]
    assert ran[0][1] == 50
