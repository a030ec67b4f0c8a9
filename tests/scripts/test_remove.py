"""remove.lua"""

from __future__ import annotations

import pytest

from faena.options import Retain
from faena.outcomes import Buried, Completed, Retried
from tests._support.rig import BOOM, SECOND, T0, Rig, score


async def test_finished_jobs_go_with_all_they_own(rig: Rig) -> None:
    await rig.run("kept", Buried(BOOM))
    await rig.remember()
    await rig.run("dead", Buried(BOOM))
    await rig.run("done", Completed(b"1"))
    assert await rig.engine.remove("q", ["dead", "done"]) == ["removed", "removed"]
    taken = await rig.dump()
    assert (taken["specs"], taken["clock"]["removed"]) == ({"kept": b"010\n{}"}, 2)
    assert {"results", "info:dead", "completed"}.isdisjoint(taken)
    assert [job for job, _ in taken["dead"]] == ["kept"]
    assert (await rig.counters())["removed"] == 2


@pytest.mark.parametrize(("state", "facts"), [("ready", {}), ("delayed", {"delay": SECOND})])
async def test_waiting_jobs_go_and_leave_the_others(
    rig: Rig, state: str, facts: dict[str, int]
) -> None:
    await rig.add("a", "b", **facts)
    assert await rig.engine.remove("q", ["a", "a"]) == ["removed", "removed"]
    assert await rig.states() == {"b": state}
    assert (await rig.dump())["clock"]["removed"] == 1


async def test_a_leader_that_is_removed_frees_its_follower(rig: Rig) -> None:
    await rig.run("a", Retried(100 * SECOND, BOOM), unique="u", mode="last")
    await rig.add("b", unique="u", mode="last")
    assert await rig.engine.remove("q", ["a"]) == ["removed"]
    taken = await rig.dump()
    assert (taken["ready"], taken["unique:last:u"]) == ([("b", score(T0))], "b")


async def test_a_leader_and_its_follower_go_together(rig: Rig) -> None:
    await rig.run("a", Retried(100 * SECOND, BOOM), unique="u", mode="last")
    await rig.add("b", unique="u", mode="last")
    assert await rig.engine.remove("q", ["a", "b"]) == ["removed", "removed"]
    assert await rig.states() == {}
    assert "unique:last:u" not in await rig.dump()


async def test_the_next_of_a_chain_is_ready_when_its_head_is_removed(rig: Rig) -> None:
    await rig.add("a", "b", lane="@t", chain="c")
    assert await rig.states() == {"a": "ready", "b": "blocked"}
    assert await rig.engine.remove("q", ["a"]) == ["removed"]
    assert await rig.states() == {"b": "ready"}


async def test_what_runs_is_waited_for_or_unknown_stays(rig: Rig) -> None:
    await rig.add("running")
    await rig.claim()
    await rig.add("node", tells="f:q:flow:node")
    await rig.remember()
    asked = ["running", "node", "nobody"]
    assert await rig.engine.remove("q", asked) == ["running", "member", "unknown"]
    assert await rig.is_untouched()


async def test_a_member_whose_end_was_told_may_go(rig: Rig) -> None:
    await rig.run("node", Completed(), tells="f:q:flow:node")
    assert await rig.engine.remove("q", ["node"]) == ["removed"]


async def test_bytes_of_a_removed_job_are_given_back(rig: Rig) -> None:
    await rig.declare(retain=Retain(dead_bytes=1000))
    rig.clock.go(1)
    await rig.run("a", Buried(BOOM))
    assert (await rig.dump())["clock"]["dead_bytes"] > 0
    await rig.engine.remove("q", ["a"])
    assert (await rig.dump())["clock"]["dead_bytes"] == 0
