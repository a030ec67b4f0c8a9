"""exchange.lua: a job whose turn comes too late ends there, and nothing counts it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from faena import Limit
from faena.engine.scripts import Exchanged
from faena.outcomes import Completed, Released
from tests._support.rig import KEEP_NONE, SECOND, T0, Rig
from tests._support.transfer import Transfer

OF_A_CALL = 100
"""How many one call ends at most."""


def ids(exchanged: Exchanged) -> list[str]:
    return [claim.id for claim in exchanged.claimed]


def expired(exchanged: Exchanged) -> list[str]:
    return [late.id for late in exchanged.expired]


async def add_late(rig: Rig, *jobs: str, **facts: Any) -> None:
    await rig.add(*jobs, expires=T0, **facts)


async def test_a_job_that_has_expired_is_cancelled_and_the_next_is_claimed(rig: Rig) -> None:
    await rig.add("a", lasts=SECOND)
    await rig.add("b")
    rig.clock.go(1)
    exchanged = await rig.turn(1, call="lease1")
    assert (ids(exchanged), expired(exchanged)) == (["b"], ["a"])
    found = await rig.dump()
    assert found["cancelled"] == [("a", T0 + SECOND)]
    assert found["marks"] == {"a": {"e": T0 + SECOND, "i": 1}}
    assert json.loads(found["info:a"]["error:1"]) == {
        "name": "Expired",
        "message": "it expired before it was started",
        "code": "EXPIRED",
        "worker": "worker",
        "at": T0 + SECOND,
    }
    assert (await rig.events())[-1] == {"worker": "worker", "claimed": "b", "cancelled": "a"}
    assert (await rig.counters())["claimed"] == 1


async def test_a_call_that_comes_again_is_answered_without_the_news(rig: Rig) -> None:
    await add_late(rig, "a")
    await rig.add("b")
    first = await rig.turn(2, call="call9")
    await rig.remember()
    assert await rig.turn(2, call="call9") == first._replace(buried=(), expired=())
    assert await rig.is_untouched()


async def test_expired_jobs_use_up_no_limit_of_the_queue(rig: Rig) -> None:
    await rig.declare(limits=[Limit("2/10s")])
    await add_late(rig, "a", "b", "c")
    await rig.add("d", "e", "f")
    assert ids(await rig.turn(5)) == ["d", "e"]
    assert (await rig.dump())["clock"]["window:10000000"] == 2


async def test_expired_jobs_take_no_running_slot(rig: Rig) -> None:
    await rig.declare(max_running=1)
    await add_late(rig, "a", "b")
    await rig.add("c", "d")
    assert ids(await rig.turn(5)) == ["c"]


async def test_expired_jobs_use_up_no_limit_by_cost(rig: Rig) -> None:
    await rig.declare(limits=[Limit("100/10s", cost="tokens")])
    await add_late(rig, "huge", cost="tokens:5000")
    await add_late(rig, "a", cost="tokens:90")
    await rig.add("b", cost="tokens:90")
    assert ids(await rig.turn(5)) == ["b"]


async def test_more_of_them_than_a_call_ends_let_no_bound_be_passed(rig: Rig) -> None:
    await rig.declare(limits=[Limit("100/10s", cost="tokens"), Limit("3/10s")], max_running=2)
    await add_late(rig, *(f"late{number:03d}" for number in range(2 * OF_A_CALL)))
    await rig.add(*(f"live{number}" for number in range(9)))
    running: list[str] = []
    for _ in range(5):
        running += ids(await rig.turn(9))
    assert running == ["live0", "live1"]
    assert (await rig.dump())["clock"]["window:10000000"] == 2


async def test_expired_jobs_use_up_neither_limit_nor_turn_of_their_tenant(rig: Rig) -> None:
    await rig.declare(tenant_limits=[Limit("1/10s"), Limit("100/10s", cost="tokens")])
    await add_late(rig, "a1", "a2", "a3", lane="@a", cost="tokens:60")
    await rig.add("a4", lane="@a", cost="tokens:60")
    await rig.add("b1", lane="@b")
    assert sorted(ids(await rig.turn(2))) == ["a4", "b1"]
    found = await rig.dump()
    assert found["claims:10000000@a"][0] == 1
    assert found["claims:10000000/tokens@a"][0] == 60
    assert found["lanes"] == {"@a": "1000001", "@b": "1000001"}
    assert "lane:@a" not in found


async def test_a_tenant_with_nothing_but_expired_jobs_is_gone(rig: Rig) -> None:
    await add_late(rig, "a1", "a2", lane="@a")
    assert ids(await rig.turn(5)) == []
    found = await rig.dump()
    assert not {"ring", "lanes", "parked", "ready", "lane:@a"} & set(found)
    assert found["clock"]["laned"] == 0


async def test_expired_jobs_use_up_no_limit_of_their_key(rig: Rig) -> None:
    await rig.declare(key_limits=[Limit("1/10s")])
    key = {"lane": "@a", "key": "k/1/a/x"}
    await rig.add("x0", **key)
    await rig.add("x1", "x2", "x3", lasts=10 * SECOND, **key)
    await rig.add("x4", **key)
    assert ids(await rig.turn(5)) == ["x0"]  # the others wait aside
    rig.clock.go(10)
    exchanged = await rig.turn(5)
    assert (ids(exchanged), sorted(expired(exchanged))) == (["x4"], ["x1", "x2", "x3"])
    clock = (await rig.dump())["clock"]
    assert (clock["laned"], clock["aside"]) == (0, 0)


async def test_many_expired_jobs_of_a_key_do_not_keep_the_next_aside_for_ever(rig: Rig) -> None:
    await rig.declare(key_limits=[Limit("1/10s")])
    key = {"lane": "@a", "key": "k/1/a/x"}
    await rig.add("x0", **key)
    await rig.add(*[f"x{number}" for number in range(1, 80)], lasts=10 * SECOND, **key)
    await rig.add("live", **key)
    while (await rig.turn(5)).more:
        pass
    assert (await rig.dump())["clock"]["aside"] == 80
    rig.clock.go(10)
    claimed: list[str] = []
    for _ in range(3):
        claimed += ids(await rig.turn(5))
    assert claimed == ["live"]


async def test_what_is_looked_at_behind_jobs_set_aside_is_judged_as_well(rig: Rig) -> None:
    await rig.declare(key_limits=[Limit("1/10s")])
    await rig.add("x0", "x1", lane="@a", key="k/1/a/x")
    await add_late(rig, "y0", lane="@a", key="k/1/a/y")
    await rig.add("y1", lane="@a", key="k/1/a/y")
    assert ids(await rig.turn(2)) == ["x0", "y1"]


@pytest.mark.parametrize("lane", [None, "@a"])
async def test_the_turn_of_a_chain_passes_over_all_that_have_expired(
    rig: Rig, lane: str | None
) -> None:
    facts = {"chain": "t/a"} | ({"lane": lane} if lane else {})
    await rig.add("first", **facts)
    await rig.add(*[f"late{number}" for number in range(5)], lasts=SECOND, **facts)
    await rig.add("last", **facts)
    lease = await rig.claim()
    rig.clock.go(1)
    first = await rig.turn(1, ("first", lease, Completed()))
    assert (ids(first), len(first.expired), first.more) == ([], 5, True)
    assert ids(await rig.turn(1)) == ["last"]
    assert (await rig.dump())["heads"] == {"t/a": "last"}


async def test_a_long_chain_of_expired_jobs_is_passed_over_in_a_few_calls(rig: Rig) -> None:
    await add_late(rig, *[f"j{number:03d}" for number in range(250)], chain="t/a")
    await rig.add("live", chain="t/a")
    numbers: list[int] = []
    while not (exchanged := await rig.turn(1)).claimed:
        assert exchanged.more, "the worker comes back at once"
        numbers.append(len(exchanged.expired))
    assert ids(exchanged) == ["live"]
    assert sum(numbers) == 250
    assert max(numbers) <= OF_A_CALL


async def test_the_follower_of_an_expired_job_may_run(rig: Rig) -> None:
    await rig.add("first", unique="u", mode="last", lasts=SECOND)
    lease = await rig.claim()
    await rig.add("newest", unique="u", mode="last")
    await rig.turn(0, ("first", lease, Released()))
    rig.clock.go(1)
    exchanged = await rig.turn(1)
    assert (expired(exchanged), exchanged.more) == (["first"], True)
    assert ids(await rig.turn(1)) == ["newest"]


async def test_the_answer_tells_when_the_follower_of_an_expired_job_is_due(rig: Rig) -> None:
    await rig.add("first", unique="u", mode="last", lasts=SECOND)
    lease = await rig.claim()
    await rig.add("newest", unique="u", mode="last", delay=9 * SECOND)
    await rig.turn(0, ("first", lease, Released()))
    rig.clock.go(1)
    exchanged = await rig.turn(1)
    assert expired(exchanged) == ["first"]
    assert (await rig.dump())["delayed"] == [("newest", exchanged.next_at)]


async def test_a_unique_claim_ends_with_the_job_that_expires(rig: Rig) -> None:
    await add_late(rig, "a", unique="u", mode="live")
    await rig.turn(1)
    assert not any(name.startswith("unique:") for name in await rig.dump())
    assert (await rig.add("b", unique="u", mode="live"))[0].code == "CREATED"


async def test_a_flow_hears_that_its_job_has_expired(rig: Rig) -> None:
    await add_late(rig, "a", tells="f:q:flow:1")
    exchanged = await rig.turn(1)
    assert exchanged.has_outbox
    assert (await rig.dump())["marks"]["a"]["t"] == "cancelled"


async def test_where_nothing_is_kept_an_expired_job_leaves_nothing(rig: Rig) -> None:
    await rig.declare(retain=KEEP_NONE)
    await add_late(rig, "a", lane="@a")
    await rig.turn(1)
    await rig.turn(1)
    found = await rig.dump()
    assert not {"specs", "marks", "ready", "cancelled", "lanes", "info:a"} & set(found)


@pytest.mark.parametrize("lane", [None, "@a"])
async def test_ten_thousand_expired_jobs_hold_up_the_next_for_a_bounded_number_of_calls(
    rig: Rig, lane: str | None
) -> None:
    facts = {"lane": lane} if lane else {}
    number = 10_000
    for start in range(0, number, 1000):
        await add_late(rig, *[f"j{start + at:05d}" for at in range(1000)], **facts)
    await rig.add("live", **facts)
    exchanged = await rig.turn(10)
    for _ in range(number // 50):
        if exchanged.claimed:
            break
        assert 0 < len(exchanged.expired) <= OF_A_CALL
        assert exchanged.more, "the worker comes back at once"
        exchanged = await rig.turn(10)
    assert ids(exchanged) == ["live"]


async def test_another_tenant_s_jobs_do_not_wait_for_expired_ones(rig: Rig) -> None:
    await add_late(rig, *[f"j{number:04d}" for number in range(1000)], lane="@a")
    await rig.add("live", lane="@b")
    assert ids(await rig.turn(10)) == ["live"]


async def test_claims_know_when_the_first_job_may_expire_until_the_queue_is_idle(rig: Rig) -> None:
    await rig.add("plain")
    assert "expires_from" not in (await rig.dump())["clock"]
    await rig.add("a", lasts=5 * SECOND)
    await rig.add("b", lasts=3 * SECOND)
    await rig.add("c", lasts=9 * SECOND, unique="u", mode="last")
    assert (await rig.dump())["clock"]["expires_from"] == T0 + 3 * SECOND
    lease = await rig.claim(4)
    await rig.turn(1, *((job, lease, Completed()) for job in ("plain", "a", "b")))
    assert (await rig.dump())["clock"]["expires_from"] == T0 + 3 * SECOND
    await rig.turn(1, ("c", lease, Completed()))
    assert "expires_from" not in (await rig.dump())["clock"]


async def test_claims_know_it_also_while_all_who_wait_are_held(rig: Rig) -> None:
    await rig.add("a", lane="@a", lasts=SECOND)
    await rig.engine.tenant("q", "@a", {"held_until": "0"}, by="ops")
    assert ids(await rig.turn(1)) == []
    await rig.engine.tenant("q", "@a", {"held_until": ""}, by="ops")
    rig.clock.go(1)
    assert expired(await rig.turn(1)) == ["a"]


async def test_a_job_expires_in_the_shard_that_it_has_moved_to(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.add("a", lane="@a", lasts=SECOND)
    await transfer.move(["@a"], "a")
    rig.clock.go(1)
    transfer.target.clock.now = rig.clock.now
    exchanged = await transfer.target.turn(1)
    assert (ids(exchanged), expired(exchanged)) == ([], ["a"])
