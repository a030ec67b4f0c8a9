"""cancel.lua"""

from __future__ import annotations

from faena.engine.keys import channel
from faena.options import Retain
from faena.outcomes import Buried, Completed, Retried
from tests._support.eventually import eventually
from tests._support.rig import BOOM, KEEP_NONE, SECOND, T0, Rig


async def test_a_waiting_job_is_cancelled_at_once(rig: Rig) -> None:
    await rig.add("ready")
    await rig.add("delayed", delay=SECOND)
    await rig.remember()
    assert await rig.engine.cancel("q", ["ready", "delayed"]) == ["cancelled", "cancelled"]
    assert await rig.changed() == {
        "cancelled": [("delayed", T0), ("ready", T0)],
        "delayed": None,
        "ready": None,
    }
    assert (await rig.events())[-1] == {"worker": "", "cancelled": "ready delayed"}


async def test_a_running_job_is_asked_to_stop_and_its_worker_told(rig: Rig) -> None:
    heard: list[bytes] = []
    name = channel(rig.engine.namespace, "stop")
    listening = await rig.engine.wire.listen({name: heard.append})
    await rig.add("a")
    await rig.claim()
    await rig.remember()
    assert await rig.engine.cancel("q", ["a"]) == ["asked"]
    assert await rig.changed() == {"marks": {"a": {"c": 1}}}
    await eventually(lambda: heard)
    assert heard == [f"{rig.engine.namespace}:{{q}}:a".encode()]
    await listening.close()


async def test_the_second_request_answers_alike_and_changes_nothing(rig: Rig) -> None:
    await rig.add("running", "waiting")
    await rig.claim()
    await rig.engine.cancel("q", ["running", "waiting"])
    await rig.remember()
    assert await rig.engine.cancel("q", ["running", "waiting"]) == ["asked", "cancelled"]
    assert await rig.is_untouched()


async def test_one_id_twice_in_a_call_is_cancelled_once(rig: Rig) -> None:
    await rig.add("a")
    assert await rig.engine.cancel("q", ["a", "a"]) == ["cancelled", "cancelled"]
    assert (await rig.counters())["cancelled"] == 1


async def test_finished_and_unknown_jobs_are_left_alone(rig: Rig) -> None:
    await rig.run("completed", Completed())
    await rig.run("dead", Buried(BOOM))
    await rig.remember()
    answers = await rig.engine.cancel("q", ["completed", "dead", "never"])
    assert answers == ["completed", "dead", "unknown"]
    assert await rig.is_untouched()


async def test_a_cancelled_leader_frees_its_follower_unless_that_is_cancelled_too(
    rig: Rig,
) -> None:
    for leader, follower, unique in (("a", "b", "u"), ("x", "y", "v")):
        await rig.run(leader, Retried(3600 * SECOND, BOOM), unique=unique, mode="last")
        await rig.add(follower, unique=unique, mode="last")
    await rig.engine.cancel("q", ["a", "y", "x"])
    states = await rig.states()
    assert states == {"a": "cancelled", "b": "ready", "x": "cancelled", "y": "cancelled"}


async def test_a_cancelled_follower_leaves_its_leader_alone(rig: Rig) -> None:
    await rig.add("a", unique="u", mode="last")
    lease = await rig.claim()
    await rig.add("b", unique="u", mode="last")
    assert await rig.engine.cancel("q", ["b"]) == ["cancelled"]
    await rig.turn(0, ("a", lease, Completed()))
    taken = await rig.dump()
    assert await rig.states() == {"a": "completed", "b": "cancelled"}
    assert "unique:last:u" not in taken


async def test_a_cancelled_job_that_nobody_keeps_is_gone(rig: Rig) -> None:
    await rig.declare(retain=KEEP_NONE)
    await rig.add("a", unique="u", mode="live")
    await rig.engine.cancel("q", ["a"])
    taken = await rig.dump()
    assert {"specs", "marks", "cancelled", "unique:live:u"}.isdisjoint(taken)
    assert taken["clock"]["removed"] == 1
    assert await rig.engine.cancel("q", ["a"]) == ["unknown"]


async def test_cancelling_keeps_the_count_of_cancelled_jobs(rig: Rig) -> None:
    await rig.declare(retain=Retain(cancelled_count=1))
    for job in ("a", "b"):
        rig.clock.go(1)
        await rig.add(job)
        await rig.engine.cancel("q", [job])
    assert await rig.states() == {"b": "cancelled"}


async def test_a_queue_without_settings_cancels_nothing(rig: Rig) -> None:
    assert await rig.engine.ask("cancel", "q", "a") == [b"UNCONFIGURED"]
    assert await rig.dump() == {}
