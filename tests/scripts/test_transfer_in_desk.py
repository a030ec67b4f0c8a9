"""transfer_out.lua and transfer_in.lua: what the dead-letter desk knows of a job moves along"""

from __future__ import annotations

from tests._support.desk_rig import DeskRig
from tests._support.rig import SECOND, T0, Rig
from tests._support.transfer import Transfer

LANE = {"lane": "@a"}


async def test_a_dead_job_is_found_at_its_new_shard_as_it_was_at_the_old_one(
    rig: Rig, transfer: Transfer
) -> None:
    desk_rig = DeskRig(rig)
    await desk_rig.bury("a", facts=LANE, tenant="a", code="E1", retry_us=SECOND, most=2)
    before = {name: of for name, of in (await rig.dump()).items() if name.startswith("desk")}
    rig.clock.go(5)
    await transfer.move(["@a"], "a")
    left, come = await rig.dump(), await transfer.target.dump()
    assert not [name for name in left if name.startswith("desk")]
    assert {name: of for name, of in come.items() if name.startswith("desk")} == before
    assert come["desk_due"] == [("a", T0 + SECOND)]
    await transfer.check()


async def test_what_was_decided_moves_along_and_the_line_stays_linked(
    rig: Rig, transfer: Transfer
) -> None:
    desk_rig = DeskRig(rig)
    await desk_rig.bury("a", "b", facts=LANE)
    await desk_rig.retry_as_new("a")
    await desk_rig.dismiss("discarded", "b")
    await transfer.move(["@a"], "a", "a2", "b")
    come = await transfer.target.dump()
    assert (come["desk"]["a"]["to"], come["desk"]["b"]["s"]) == ("a2", "discarded")
    assert come["marks"]["a2"]["b"] == "a"
    assert come["desk_groups"] == [("f00", 0.0)]


async def test_a_group_stays_where_it_has_other_jobs(rig: Rig, transfer: Transfer) -> None:
    desk_rig = DeskRig(rig)
    await desk_rig.bury("a", facts=LANE)
    await desk_rig.bury("b", facts={"lane": "@b"})
    await transfer.move(["@a"], "a")
    for shard in (rig, transfer.target):
        taken = await shard.dump()
        assert taken["desk_groups"] == [("f00", 1.0)]
        assert taken["desk_samples"] == {"f00": ["Boom", "", "it broke"]}
