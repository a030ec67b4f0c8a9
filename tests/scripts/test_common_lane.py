"""Jobs without a tenant share a lane from when they meet those of tenants."""

from __future__ import annotations

from faena.outcomes import Completed, Retried
from tests._support.rig import BOOM, SECOND, Rig


async def served(rig: Rig, claims: int, want: int = 1) -> list[str]:
    """What so many claims take, each of them settled at once."""
    ids: list[str] = []
    for _ in range(claims):
        call = rig.next_call()
        claimed = (await rig.turn(want, call=call)).claimed
        ids += [claim.id for claim in claimed]
        await rig.turn(0, *((claim.id, call, Completed()) for claim in claimed))
    return ids


async def test_without_tenants_there_is_no_lane(rig: Rig) -> None:
    await rig.add("a", "b", "c")
    await rig.add("late", delay=SECOND)
    rig.clock.go(2)
    assert len((await rig.turn(4)).claimed) == 4
    assert not {"lanes", "ring", "lane:@", "debts"} & {*await rig.dump()}


async def test_a_job_without_a_tenant_takes_turns_with_those_that_have_one(rig: Rig) -> None:
    await rig.add(*(f"a{n}" for n in range(9)), lane="@a")
    await rig.add("x", "y")
    dump = await rig.dump()
    assert dump["specs"]["x"] == b"010 lane=@\n{}"
    assert dump["lanes"] == {"@a": "9000000", "@": "2000000"}
    assert [job for job in await served(rig, 4) if job in {"x", "y"}] == ["x", "y"]


async def test_one_that_waits_already_joins_with_the_next_claim(rig: Rig) -> None:
    await rig.add("old", "older")
    await rig.add(*(f"a{n}" for n in range(9)), lane="@a")
    assert (await rig.dump())["specs"]["old"] == b"010\n{}"
    assert "old" in await served(rig, 1, want=2)
    dump = await rig.dump()
    assert dump["specs"]["older"] == b"010 lane=@\n{}"
    assert dump["lanes"] == {"@a": "8000000", "@": "1000000"}


async def test_claims_of_one_job_give_turns_to_those_that_came_after_many(rig: Rig) -> None:
    await rig.add(*(f"x{n:03d}" for n in range(250)))
    await rig.add("a0", "a1", "a2", lane="@a")
    first = await served(rig, 6)
    assert [job for job in first if job.startswith("a")] == ["a0", "a1", "a2"]
    assert [job for job in first if job.startswith("x")] == ["x000", "x001", "x002"]


async def test_a_held_tenant_s_urgent_jobs_hide_nobody(rig: Rig) -> None:
    await rig.add(*(f"x{n:02d}" for n in range(50)))
    await rig.add(*(f"a{n:03d}" for n in range(150)), lane="@a", priority=0)
    await rig.engine.tenant("q", "@a", {"held_until": "0"}, by="ops")
    assert sorted(await served(rig, 5, want=10)) == [f"x{n:02d}" for n in range(50)]


async def test_claims_find_those_behind_any_number_of_others(rig: Rig) -> None:
    await rig.add(*(f"x{n:03d}" for n in range(150)))
    for start in range(0, 2000, 500):
        jobs = (f"a{n:04d}" for n in range(start, start + 500))
        await rig.add(*jobs, lane="@a", priority=0)
    await rig.engine.tenant("q", "@a", {"held_until": "0"}, by="ops")
    ids, more = [], True
    while more:  # a claim that has not looked at all asks to be followed by another at once
        call = rig.next_call()
        answer = await rig.turn(40, call=call)
        ids, more = ids + [claim.id for claim in answer.claimed], answer.more
    assert ids == [f"x{n:03d}" for n in range(150)]
    assert not {"walked", "walked_ties"} & (await rig.dump())["clock"].keys()


async def test_claims_walk_past_many_of_one_instant(rig: Rig) -> None:
    await rig.add("x", priority=90)
    await rig.add(*(f"a{n:04d}" for n in range(900)), lane="@a", delay=SECOND)
    rig.clock.go(2)
    await rig.engine.tenant("q", "@a", {"held_until": "0"}, by="ops")
    for _ in range(30):
        await rig.turn(0)  # which brings those that are due
    assert await served(rig, 3) == ["x"]


async def test_one_that_is_due_behind_many_of_a_tenant_takes_its_turn(rig: Rig) -> None:
    await rig.add("late", delay=SECOND)
    await rig.add(*(f"a{n:03d}" for n in range(250)), lane="@a")
    rig.clock.go(2)
    assert "late" in await served(rig, 2)


async def test_one_that_failed_comes_back_into_the_lane(rig: Rig) -> None:
    await rig.add("x")
    lease = await rig.claim()
    await rig.add(*(f"a{n:03d}" for n in range(250)), lane="@a")
    await rig.turn(0, ("x", lease, Retried(SECOND, BOOM)))
    rig.clock.go(2)
    assert "x" in await served(rig, 2)
    assert (await rig.dump())["lanes"].keys() == {"@a"}


async def test_in_one_batch_those_behind_the_first_tenant_s_share_the_lane(rig: Rig) -> None:
    jobs = [("x", b"010\n{}"), ("a", b"010 lane=@a\n{}"), ("y", b"010\n{}")]
    await rig.engine.enqueue("q", "producer", rig.next_call(), jobs)
    specs = (await rig.dump())["specs"]
    assert [specs[job] for job in "xay"] == [b"010\n{}", b"010 lane=@a\n{}", b"010 lane=@\n{}"]


async def test_a_job_in_the_lane_is_known_by_its_id_as_before(rig: Rig) -> None:
    await rig.add("a", lane="@a")
    await rig.add("x")
    (same,) = await rig.add("x")
    (other,) = await rig.add("x", body=b"[]")
    assert (same.code, other.code) == ("DUPLICATE", "CONFLICT")


async def test_a_job_that_was_promoted_changed_or_rerun_shares_the_lane(rig: Rig) -> None:
    await rig.run("again", Completed())
    await rig.add("late", "changed", delay=SECOND)
    await rig.add("a", lane="@a")
    await rig.engine.promote("q", ["late"])
    await rig.engine.change("q", "changed", priority=50, delay_us=0)
    await rig.engine.rerun("q", ["again"])
    ready = {job for job, _ in (await rig.dump())["lane:@"]}
    assert ready == {"late", "changed", "again"}


async def test_a_job_that_is_named_twice_joins_the_lane_once(rig: Rig) -> None:
    await rig.add("late", delay=SECOND)
    await rig.add("a", lane="@a")
    await rig.engine.promote("q", ["late", "late"])
    assert (await rig.dump())["lanes"] == {"@a": "1000000", "@": "1000000"}


async def test_those_that_have_joined_in_a_batch_count_for_the_lane(rig: Rig) -> None:
    await rig.engine.configure("q", {"tenant_hard": "1"})
    jobs = [("a", b"010 lane=@a\n{}"), ("x", b"010\n{}"), ("y", b"010 lane=@\n{}")]
    *_, last = await rig.engine.enqueue("q", "producer", rig.next_call(), jobs)
    assert (last.code, last.extra) == ("TENANT_OVERLOADED", 1)


async def test_a_job_that_comes_alone_shares_the_lane_of_those_without_a_tenant(rig: Rig) -> None:
    await rig.add("a0", "a1", lane="@a")
    await rig.add("alone")
    dump = await rig.dump()
    assert dump["specs"]["alone"] == b"010 lane=@\n{}"
    assert [job for job, _ in dump["lane:@"]] == ["alone"]
