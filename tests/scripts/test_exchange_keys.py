"""Limits of each key: what waits for its key holds up nobody, and no window holds too much."""

from __future__ import annotations

from collections import defaultdict

import pytest

from faena import Limit
from faena.engine.scripts import Exchanged
from faena.errors import ConfigError
from faena.outcomes import Completed, Released
from tests._support.rig import SECOND, STEP, T0, Rig

ONE = Limit("1/10s")


def ids(exchanged: Exchanged) -> list[str]:
    return [claim.id for claim in exchanged.claimed]


async def add(rig: Rig, *jobs: str, tenant: str = "a", key: str = "", priority: int = 10) -> None:
    """Jobs of the key that their first letter names, or of a given one."""
    for job in jobs:
        name = f"k/{len(tenant)}/{tenant}/{key or job[0]}"
        await rig.add(job, lane=f"@{tenant}", key=name, priority=priority)


async def test_a_job_whose_key_is_at_its_limit_holds_up_no_other_key(rig: Rig) -> None:
    await rig.declare(key_limits=[ONE])
    await add(rig, "x1", "x2", "x3", "y1", "y2", "z1")
    exchanged = await rig.turn(10)
    assert ids(exchanged) == ["x1", "y1", "z1"]
    assert (exchanged.gate, exchanged.next_at, exchanged.more) == ("", T0 + 10 * SECOND, False)
    dump = await rig.dump()
    assert dump["aside"] == [("k/1/a/x", T0 + 10 * SECOND), ("k/1/a/y", T0 + 10 * SECOND)]
    assert [job for job, _ in dump["aside:k/1/a/x"]] == ["x2", "x3"]
    assert "ring" not in dump
    assert (await rig.states())["x3"] == "ready"


async def test_a_key_is_served_again_at_the_instant_its_window_opens(rig: Rig) -> None:
    await rig.declare(key_limits=[ONE])
    await add(rig, "x1", "x2", "x3", "y1")
    await rig.turn(10)
    rig.clock.go(9.999999)
    assert ids(await rig.turn(10)) == []
    rig.clock.go(0.000001)
    exchanged = await rig.turn(10)
    assert ids(exchanged) == ["x2"]
    assert exchanged.next_at == T0 + 20 * SECOND
    rig.clock.go(10)
    assert ids(await rig.turn(10)) == ["x3"]
    dump = await rig.dump()
    assert "aside" not in dump
    assert dump["clock"].get("aside", 0) == 0
    assert dump["clock"].get("laned", 0) == 0


async def test_the_same_key_of_another_tenant_has_windows_of_its_own(rig: Rig) -> None:
    await rig.declare(key_limits=[ONE])
    await add(rig, "x1", "x2")
    await add(rig, "x8", "x9", tenant="b")
    assert sorted(ids(await rig.turn(10))) == ["x1", "x8"]


async def test_jobs_without_a_key_are_not_limited(rig: Rig) -> None:
    await rig.declare(key_limits=[ONE])
    await add(rig, "x1", "x2")
    await rig.add("n1", "n2", "n3", lane="@a")
    assert ids(await rig.turn(10)) == ["x1", "n1", "n2", "n3"]


async def test_nobody_overtakes_a_key_that_a_call_had_no_look_left_for(rig: Rig) -> None:
    await rig.declare(key_limits=[ONE])

    async def claim_with(wave: str) -> set[str]:
        for number in range(60):  # more keys than a call looks at
            await add(rig, f"{wave}{number}", key=f"n{number}")
        return {job[0] for job in ids(await rig.turn(200))}

    assert await claim_with("a") == {"a"}
    assert await claim_with("b") == set()
    rig.clock.go(10)
    assert await claim_with("c") == {"b"}


async def test_a_later_job_does_not_overtake_one_of_its_key_that_is_set_aside(rig: Rig) -> None:
    await rig.declare(key_limits=[Limit("2/10s")])
    await add(rig, "x1", "x2", "x3")
    await rig.turn(10)
    rig.clock.go(10)
    await add(rig, "x4", "x5")
    assert ids(await rig.turn(1)) == ["x3"]
    assert ids(await rig.turn(10)) == ["x4"]
    rig.clock.go(10)
    assert ids(await rig.turn(10)) == ["x5"]


async def test_an_urgent_job_of_the_key_comes_first(rig: Rig) -> None:
    await rig.declare(key_limits=[ONE])
    await add(rig, "x1", "x2")
    await rig.turn(10)
    await add(rig, "x3", priority=1)
    assert ids(await rig.turn(10)) == []
    rig.clock.go(10)
    assert ids(await rig.turn(10)) == ["x3"]


async def test_a_claim_looks_through_a_bounded_number_and_is_asked_again_at_once(rig: Rig) -> None:
    await rig.declare(key_limits=[ONE])
    await add(rig, *(f"x{n:04d}" for n in range(500)))
    await add(rig, "y1")
    found: list[str] = []
    calls = 0
    is_more = True
    while is_more:
        calls += 1
        before = (await rig.dump())["clock"].get("aside", 0)
        exchanged = await rig.turn(5)
        found += ids(exchanged)
        assert (await rig.dump())["clock"]["aside"] - before <= 200
        is_more = exchanged.more
        assert is_more or exchanged.next_at == T0 + 10 * SECOND
    assert found == ["x0000", "y1"]
    assert calls <= 4


async def test_another_tenant_is_served_beside_a_deep_key(rig: Rig) -> None:
    await rig.declare(key_limits=[ONE])
    await add(rig, *(f"x{n:04d}" for n in range(400)))
    await add(rig, "p1", "q1", tenant="b")
    assert {"p1", "q1"} <= set(ids(await rig.turn(10)))


async def test_a_released_job_is_claimed_under_the_limit_again(rig: Rig) -> None:
    await rig.declare(key_limits=[ONE])
    await add(rig, "x1", "x2")
    lease = await rig.claim()
    assert ids(await rig.turn(5, ("x1", lease, Released()))) == []
    rig.clock.go(10)
    assert ids(await rig.turn(5)) == ["x1"]
    rig.clock.go(10)
    assert ids(await rig.turn(5)) == ["x2"]


async def test_a_rescued_job_s_claim_stays_counted(rig: Rig) -> None:
    await rig.declare(key_limits=[ONE], lease="1s")
    await add(rig, "x1", "x2")
    await rig.claim()
    rig.clock.go(2)
    assert ids(await rig.turn(5, is_sweep=True)) == []
    rig.clock.go(8)
    assert ids(await rig.turn(5)) == ["x1"]


async def test_the_same_call_again_counts_once(rig: Rig) -> None:
    await rig.declare(key_limits=[Limit("2/10s")])
    await add(rig, "x1", "x2", "x3")
    await rig.turn(1, call="once")
    await rig.turn(1, call="once")
    assert ids(await rig.turn(5)) == ["x2"]


async def test_limits_stack_and_hold_wherever_a_window_begins(rig: Rig) -> None:
    await rig.declare(key_limits=[Limit("2/s"), Limit("5/10s")], lease="1h")
    for n in range(60):
        await add(rig, f"{'xyz'[n % 3]}{n:03d}")
    claims: dict[str, list[int]] = defaultdict(list)
    for _ in range(600):
        for job in ids(await rig.turn(3)):
            claims[job[0]].append(rig.clock.now)
        rig.clock.go(0.13)
    assert {key: len(at) for key, at in claims.items()} == {"x": 20, "y": 20, "z": 20}
    for instants in claims.values():
        for most, per in ((2, SECOND), (5, 10 * SECOND)):
            for start in instants:
                assert sum(start <= at < start + per for at in instants) <= most


# -- beside other bounds ------------------------------------------------------------------------


async def test_a_tenant_s_limit_and_its_keys_bind_together(rig: Rig) -> None:
    await rig.declare(key_limits=[ONE], tenant_limits=[Limit("2/20s")])
    await add(rig, "x1", "x2", "y1", "z1")
    assert ids(await rig.turn(10)) == ["x1", "y1"]
    rig.clock.go(10)
    assert ids(await rig.turn(10)) == []
    rig.clock.go(10)
    assert ids(await rig.turn(10)) == ["x2", "z1"]


async def test_what_went_back_and_was_not_claimed_uses_nothing_up(rig: Rig) -> None:
    await rig.declare(key_limits=[ONE], max_running=1, lease="1h")
    await add(rig, "x1", "x2", "x3")
    lease = await rig.claim()
    rig.clock.go(30)
    for _ in range(3):
        assert ids(await rig.turn(5)) == []
        rig.clock.go(1)
    assert ids(await rig.turn(5, ("x1", lease, Completed()))) == ["x2"]


async def test_a_limit_by_cost_lets_nothing_overtake_and_sets_nothing_aside(rig: Rig) -> None:
    await rig.declare(key_limits=[ONE], limits=[Limit("10/10s", cost="tokens")])
    for job, tokens in (("x1", 6), ("x2", 1), ("y1", 5), ("z1", 1)):
        name = f"k/1/a/{job[0]}"
        await rig.add(job, lane="@a", key=name, cost=f"tokens:{tokens}")
    assert ids(await rig.turn(10)) == ["x1"]
    rig.clock.go(10)
    assert ids(await rig.turn(10)) == ["x2", "y1", "z1"]


async def test_in_the_order_of_keys_the_head_waits_and_those_behind_it_stay_blocked(
    rig: Rig,
) -> None:
    await rig.declare(order="key", key_limits=[ONE])
    for job in ("x1", "x2", "y1"):
        name = f"k/1/a/{job[0]}"
        await rig.add(job, lane="@a", chain=name, key=name)
    lease = "first"
    assert ids(await rig.turn(10, call=lease)) == ["x1", "y1"]
    assert ids(await rig.turn(10, ("x1", lease, Completed()))) == []
    assert (await rig.states())["x2"] == "ready"
    rig.clock.go(10)
    assert ids(await rig.turn(10)) == ["x2"]


# -- leaving, changing, looking -----------------------------------------------------------------


async def test_a_job_that_is_set_aside_can_be_cancelled(rig: Rig) -> None:
    await rig.declare(key_limits=[ONE])
    await add(rig, "x1", "x2", "x3")
    await rig.turn(10)
    await rig.engine.cancel("q", ["x2"])
    rig.clock.go(10)
    assert ids(await rig.turn(10)) == ["x3"]
    assert "aside" not in await rig.dump()


async def test_when_the_last_one_set_aside_is_cancelled_nobody_looks_again(rig: Rig) -> None:
    await rig.declare(key_limits=[ONE])
    await add(rig, "x1", "x2")
    await rig.turn(10)
    await rig.engine.cancel("q", ["x2"])
    dump = await rig.dump()
    assert "aside" not in dump
    assert dump["clock"]["aside"] == dump["clock"]["laned"] == 0


async def test_a_job_that_went_back_and_is_cancelled_gives_its_room_to_the_next(rig: Rig) -> None:
    await rig.declare(key_limits=[ONE])
    await add(rig, "x1", "x2", "x3")
    await rig.turn(10)
    rig.clock.go(10)
    await rig.turn(0)
    await rig.engine.cancel("q", ["x2"])
    assert ids(await rig.turn(10)) == ["x3"]


async def test_priority_is_changed_where_the_job_stands(rig: Rig) -> None:
    await rig.declare(key_limits=[ONE])
    await add(rig, "x1", "x2", "x3")
    await rig.turn(10)
    await rig.engine.change("q", "x3", priority=5)
    dump = await rig.dump()
    assert [job for job, _ in dump["aside:k/1/a/x"]] == ["x3", "x2"]
    assert dict(dump["aside:k/1/a/x"])["x3"] < T0 + 10 * STEP
    rig.clock.go(10)
    assert ids(await rig.turn(10)) == ["x3"]


async def test_one_that_is_delayed_by_hand_leaves_and_comes_back(rig: Rig) -> None:
    await rig.declare(key_limits=[ONE])
    await add(rig, "x1", "x2")
    await rig.turn(10)
    await rig.engine.change("q", "x2", delay_us=20 * SECOND)
    assert "aside" not in await rig.dump()
    rig.clock.go(20)
    assert ids(await rig.turn(10)) == ["x2"]


@pytest.mark.parametrize(("text", "started"), [("3/10000000", 2), ("", 3)])
async def test_limits_are_changed_for_the_next_claim(rig: Rig, text: str, started: int) -> None:
    await rig.declare(key_limits=[ONE])
    await add(rig, "x1", "x2", "x3", "x4")
    await rig.turn(10)
    await rig.edit(key_limits=text)
    assert ids(await rig.turn(10)) == ["x2", "x3", "x4"][:started]


async def test_code_that_knows_no_limits_of_keys_any_more_leaves_nobody_behind(rig: Rig) -> None:
    await rig.declare(key_limits=[ONE])
    await add(rig, "x1", "x2", "x3")
    await rig.turn(10)
    await rig.declare()
    assert ids(await rig.turn(10)) == ["x2", "x3"]
    assert (await rig.dump())["clock"]["aside"] == 0


async def test_explain_names_the_key_s_limit_and_who_comes_first(rig: Rig) -> None:
    await rig.declare(key_limits=[ONE])
    await add(rig, "x1", "x2", "x3")
    await rig.turn(10, is_sweep=True)
    for job, ahead in (("x2", 0), ("x3", 1)):
        found = await rig.engine.explain("q", job)
        assert (found.state, found.ahead) == ("ready", ahead)
        assert found.gates == (("key_limit", "1/10000000", T0 + 10 * SECOND),)


@pytest.mark.parametrize("text", ["0/5", "5", "5/5/tokens", "a/5", "5/5 "])
async def test_what_is_no_limit_of_keys_is_refused(rig: Rig, text: str) -> None:
    await rig.declare(key_limits=[ONE])
    await rig.remember()
    with pytest.raises(ConfigError, match="key_limits"):
        await rig.edit(key_limits=text)
    assert await rig.is_untouched()
