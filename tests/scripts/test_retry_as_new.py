"""retry_as_new.lua"""

from __future__ import annotations

import pytest

from faena.errors import ShardsChanged
from faena.outcomes import Completed, Retried
from tests._support.desk_rig import WHY, DeskRig
from tests._support.rig import BOOM, SECOND, T0, Rig, score


async def test_a_dead_job_becomes_a_new_one_and_both_know_of_each_other(
    rig: Rig, desk_rig: DeskRig
) -> None:
    await desk_rig.bury("a", facts={"body": b'{"n":18446744073709551615}'})
    await rig.engine.wire.call("DEL", rig.engine.wake_key("q"))
    rig.clock.go(5)
    await rig.remember()
    assert await desk_rig.retry_as_new("a") == ["OK"]
    changed = await rig.changed()
    assert changed.pop("clock")["enqueued"] == 2
    spec = b'010\n{"n":18446744073709551615}'
    assert changed == {
        "marks": {"a": {"a": 1, "i": 1}, "a2": {"p": 5, "o": "a", "b": "a"}},
        "ready": [("a2", score(T0 + 5 * SECOND, priority=5))],
        "specs": {"a": spec, "a2": spec},
        "wake": [("work", 0.0)],
    }
    record = (await rig.dump())["desk"]["a"]
    assert (record["s"], record["to"], record["r"]) == ("retried", "a2", [*WHY, T0 + 5 * SECOND])
    assert (await rig.events())[-1] == {"by": "ana", "enqueued": "a2", "retried_as_new": "a"}


async def test_a_line_remembers_its_first_job(rig: Rig, desk_rig: DeskRig) -> None:
    await desk_rig.bury("a")
    await desk_rig.retry_as_new("a")
    await desk_rig.end("a2")
    assert await desk_rig.retry_as_new("a2", action="auto") == ["OK"]
    mark = (await rig.dump())["marks"]["a22"]
    assert mark == {"p": 5, "o": "a", "b": "a2", "x": 1}


async def test_a_claim_says_which_job_was_the_first_of_the_line(
    rig: Rig, desk_rig: DeskRig
) -> None:
    await desk_rig.bury("a")
    await desk_rig.retry_as_new("a")
    await desk_rig.end("a2")
    await desk_rig.retry_as_new("a2")
    await rig.add("new")
    first = await rig.turn(2, call="call5000")
    assert {claim.id: claim.origin for claim in first.claimed} == {"a22": "a", "new": ""}
    assert (await rig.turn(2, call="call5000")).claimed == first.claimed


async def test_a_job_that_was_more_urgent_stays_so(rig: Rig, desk_rig: DeskRig) -> None:
    await desk_rig.bury("a", facts={"priority": 1})
    await desk_rig.retry_as_new("a")
    assert (await rig.dump())["marks"]["a2"]["p"] == 1


async def test_delays_and_unique_claims_have_been(rig: Rig, desk_rig: DeskRig) -> None:
    await rig.add("a", delay=SECOND, unique="u", mode="live", digest="d")
    await rig.engine.promote("q", ["a"])
    await desk_rig.end("a")
    await rig.add("b", unique="u", mode="live")
    assert await desk_rig.retry_as_new("a") == ["OK"]
    taken = await rig.dump()
    assert taken["unique:live:u"] == "b"
    assert "u" not in taken["marks"]["a2"]
    await rig.run("c", Completed())  # and its end frees nobody's claim
    assert (await rig.dump())["unique:live:u"] == "b"


async def test_a_new_job_takes_its_turn_in_lane_and_chain(rig: Rig, desk_rig: DeskRig) -> None:
    place = {"lane": "@acme", "chain": "t/acme"}
    await desk_rig.bury("a", facts=place)
    await rig.add("b", **place)
    assert await desk_rig.retry_as_new("a") == ["OK"]
    taken = await rig.dump()
    assert taken["heads"] == {"t/acme": "b"}
    assert [job for job, _ in taken["tail:t/acme"]] == ["a2"]
    assert taken["lanes"] == {"@acme": "2000000"}


async def test_what_is_not_pending_is_refused_and_nothing_changes(
    rig: Rig, desk_rig: DeskRig
) -> None:
    await desk_rig.bury("done", "thrown", "again")
    await desk_rig.dismiss("resolved", "done")
    await desk_rig.dismiss("discarded", "thrown")
    await desk_rig.retry_as_new("again")
    await rig.add("waits", delay=SECOND)
    await rig.remember()
    answers = await desk_rig.retry_as_new("done", "thrown", "again", "waits", "again2", "never")
    assert answers == ["resolved", "discarded", "retried", "delayed", "ready", "unknown"]
    assert await rig.changed() == {}


async def test_an_id_that_is_taken_is_not_overwritten(rig: Rig, desk_rig: DeskRig) -> None:
    await desk_rig.bury("a")
    await rig.add("a2", body=b"other")
    assert await desk_rig.retry_as_new("a") == ["taken"]
    assert (await rig.dump())["desk"]["a"]["s"] == "pending"


async def test_a_call_that_is_sent_again_is_answered_alike(rig: Rig, desk_rig: DeskRig) -> None:
    await desk_rig.bury("a")
    named = {"caller": "me", "id_of_call": "call", "priority": 5, **WHY._asdict()}
    assert await rig.engine.ask("retry_as_new", "q", "a", "a2", **named) == [b"OK"]
    await rig.remember()
    assert await rig.engine.ask("retry_as_new", "q", "a", "a2", **named) == [b"OK"]
    assert await rig.is_untouched()
    await rig.edit(epoch=8)  # what was done before the shards changed is done
    assert await rig.engine.ask("retry_as_new", "q", "a", "a2", epoch="0", **named) == [b"OK"]


async def test_who_knows_an_older_epoch_of_the_shards_is_told(rig: Rig, desk_rig: DeskRig) -> None:
    await desk_rig.bury("a")
    await rig.edit(epoch=8)
    await rig.remember()
    for older in (0, 7):
        with pytest.raises(ShardsChanged):
            await desk_rig.retry_as_new("a", epoch=older)
    assert await rig.is_untouched()


async def test_shards_of_another_epoch_are_told(rig: Rig, desk_rig: DeskRig) -> None:
    await desk_rig.bury("a")
    await rig.remember()
    with pytest.raises(ShardsChanged):
        await desk_rig.retry_as_new("a", epoch=7)
    assert await rig.is_untouched()


async def test_a_queue_without_settings_retries_nothing(rig: Rig) -> None:
    named = {"caller": "me", "id_of_call": "call", "priority": 5, **WHY._asdict()}
    assert await rig.engine.ask("retry_as_new", "q", "a", "a2", **named) == [b"UNCONFIGURED"]
    assert await rig.dump() == {}


async def test_running_the_same_job_again_takes_it_from_the_desk_and_keeps_its_line(
    rig: Rig, desk_rig: DeskRig
) -> None:
    await desk_rig.bury("a")
    await desk_rig.retry_as_new("a")
    await desk_rig.end("a2")
    assert await rig.engine.rerun("q", ["a2"]) == ["ready"]
    taken = await rig.dump()
    assert set(taken["desk"]) == {"a"}
    assert taken["marks"]["a2"] == {"i": 1, "p": 5, "o": "a", "b": "a"}


async def test_attempts_are_fresh(rig: Rig, desk_rig: DeskRig) -> None:
    await rig.run("a", Retried(0, BOOM))
    rig.clock.go(1)
    await rig.turn()
    await desk_rig.end("a")
    await desk_rig.retry_as_new("a")
    (claim,) = (await rig.turn(1)).claimed
    assert (claim.id, claim.attempts, claim.losses, claim.priority) == ("a2", 0, 0, 5)


@pytest.mark.parametrize(("action", "is_kept"), [("auto", True), ("retry", False)])
async def test_only_who_retries_by_hand_overrides_the_expiry_of_a_job(
    rig: Rig, desk_rig: DeskRig, action: str, is_kept: bool
) -> None:
    until = T0 + 60 * SECOND
    await desk_rig.bury("a", facts={"expires": until})
    await desk_rig.retry_as_new("a", action=action)
    (claim,) = (await rig.turn(1)).claimed
    assert claim.expires_at == (until if is_kept else 0)


async def test_a_job_that_has_expired_again_by_its_turn_is_not_claimed(
    rig: Rig, desk_rig: DeskRig
) -> None:
    await desk_rig.bury("a", facts={"expires": T0 + 60 * SECOND})
    await rig.turn(1)  # the queue is idle, and claims look at nothing any more
    await desk_rig.retry_as_new("a", action="auto")
    rig.clock.go(60)
    exchanged = await rig.turn(1)
    assert (exchanged.claimed, [late.id for late in exchanged.expired]) == ([], ["a2"])
