"""Limits by cost: what is claimed in a window never costs more than it allows."""

from __future__ import annotations

import re
from typing import Any

import pytest

from faena import Limit
from faena.engine.scripts import Exchanged
from faena.errors import ConfigError
from faena.outcomes import Completed
from tests._support.rig import SECOND, T0, Rig

TOKENS = Limit("100/10s", cost="tokens")


async def add(rig: Rig, **jobs: int) -> None:
    for job, tokens in jobs.items():
        await rig.add(job, cost=f"tokens:{tokens}")


def ids(exchanged: Exchanged) -> list[str]:
    return [claim.id for claim in exchanged.claimed]


async def test_a_claim_takes_what_fits_and_stops_at_the_first_that_does_not(rig: Rig) -> None:
    await rig.declare(limits=[TOKENS])
    await add(rig, a=60, b=30, c=20, d=5)
    exchanged = await rig.turn(10)
    assert ids(exchanged) == ["a", "b"]
    assert (exchanged.gate, exchanged.next_at, exchanged.more) == (
        "limit",
        T0 + 10 * SECOND,
        False,
    )
    assert ids(await rig.turn(10)) == []  # d would fit, and must not overtake c
    rig.clock.go(10)
    assert ids(await rig.turn(10)) == ["c", "d"]


async def test_a_limit_looks_at_as_many_jobs_as_a_claim_takes(rig: Rig) -> None:
    await rig.declare(limits=[Limit("1000/10s", cost="tokens")])
    jobs = [f"job{number:03d}" for number in range(300)]
    await rig.add(*jobs, cost="tokens:1")
    exchanged = await rig.turn(300)
    assert (ids(exchanged), exchanged.more) == (jobs, False)


@pytest.mark.parametrize("limits", [{"tenant_limits": [TOKENS]}, {"key_limits": [Limit("9/s")]}])
async def test_a_claim_reads_specs_once_though_its_limits_look_at_them(
    rig: Rig, limits: dict[str, Any]
) -> None:
    async def reads(*jobs: str) -> int:
        """How often a claim asks the server for fields, those of specs among them."""
        await rig.add(*jobs, lane="@t", key="k/1/t/k", cost="tokens:1")
        await rig.engine.wire.call("CONFIG", "RESETSTAT")
        claimed = (await rig.turn(2)).claimed
        info = (await rig.engine.wire.call("INFO", "commandstats")).decode()
        assert [claim.id for claim in claimed] == [*jobs]
        await rig.turn(0, *((claim.id, claim.lease, Completed()) for claim in claimed))
        return int(re.findall(r"cmdstat_hmget:calls=(\d+)", info)[0])

    await rig.turn()
    without = await reads("a", "b")
    await rig.declare(**limits)
    assert await reads("c", "d") == without


async def test_a_job_without_an_estimate_costs_one(rig: Rig) -> None:
    await rig.declare(limits=[Limit("3/10s", cost="tokens")])
    await rig.add("a", "b", "c", "d")
    assert ids(await rig.turn(10)) == ["a", "b", "c"]


async def test_a_claim_that_is_refused_uses_nothing_up(rig: Rig) -> None:
    await rig.declare(limits=[TOKENS])
    await add(rig, a=90, b=20)
    await rig.turn(1)
    await rig.remember()
    await rig.turn(5)
    assert "costs:10000000/tokens" not in await rig.changed()


async def test_no_window_holds_more_wherever_it_begins(rig: Rig) -> None:
    await rig.declare(limits=[TOKENS, Limit("30/s", cost="tokens"), Limit("7/s")])
    spent: list[tuple[int, int]] = []
    costs = [(7 * n) % 23 + 1 for n in range(120)]
    await add(rig, **{f"j{n:03d}": cost for n, cost in enumerate(costs)})
    for _ in range(400):
        claimed = ids(await rig.turn(3))
        spent += [(rig.clock.now, costs[int(job[1:])]) for job in claimed]
        rig.clock.go(0.13)
    assert len(spent) > 40
    for most, per in ((100, 10 * SECOND), (30, SECOND)):
        for start, _ in spent:
            assert sum(cost for at, cost in spent if start <= at < start + per) <= most


async def test_several_units_are_counted_apart(rig: Rig) -> None:
    await rig.declare(limits=[TOKENS, Limit("2/10s", cost="pages")])
    await rig.add("a", cost="pages:2,tokens:10")
    await rig.add("b", cost="tokens:10")
    assert ids(await rig.turn(5)) == ["a"]


async def test_a_rescued_job_s_claim_stays_counted(rig: Rig) -> None:
    await rig.declare(limits=[Limit("100/min", cost="tokens")], lease="1s")
    await add(rig, a=60)
    await rig.claim()
    rig.clock.go(2)
    assert ids(await rig.turn(1, is_sweep=True)) == []
    assert (await rig.states())["a"] == "ready"
    rig.clock.go(58)
    assert ids(await rig.turn(1)) == ["a"]


async def test_the_same_call_again_reserves_once(rig: Rig) -> None:
    await rig.declare(limits=[TOKENS])
    await add(rig, a=60, b=40)
    await rig.turn(1, call="once")
    await rig.turn(1, call="once")
    assert ids(await rig.turn(1)) == ["b"]


# -- tenants ------------------------------------------------------------------------------------


async def test_a_tenant_that_cannot_pay_waits_alone(rig: Rig) -> None:
    await rig.declare(tenant_limits=[TOKENS])
    for tenant in "ab":
        for n in range(3):
            await rig.add(f"{tenant}{n}", lane=f"@{tenant}", cost="tokens:60" if n else "tokens:50")
    exchanged = await rig.turn(10)
    assert sorted(ids(exchanged)) == ["a0", "b0"]
    assert exchanged.next_at == T0 + 10 * SECOND
    assert (await rig.dump())["parked"] == [("@a", T0 + 10 * SECOND), ("@b", T0 + 10 * SECOND)]
    rig.clock.go(10)
    assert sorted(ids(await rig.turn(10))) == ["a1", "b1"]


async def test_the_queue_s_window_stops_the_claim_and_no_lane_overtakes(rig: Rig) -> None:
    await rig.declare(fair=True, limits=[TOKENS])
    await rig.add("a0", lane="@a", cost="tokens:70")
    await rig.add("b0", lane="@b", cost="tokens:50")
    await rig.add("c0", lane="@c", cost="tokens:10")
    assert ids(await rig.turn(10)) == ["a0"]
    assert {lane for lane, _ in (await rig.dump())["ring"]} == {"@b", "@c"}
    rig.clock.go(10)
    assert ids(await rig.turn(10)) == ["b0", "c0"]


async def test_jobs_that_came_before_the_lanes_pay_as_well(rig: Rig) -> None:
    await rig.declare(limits=[TOKENS])
    await add(rig, old=70, older=70)
    await rig.add("a0", "a1", lane="@a", cost="tokens:20")
    assert ids(await rig.turn(2)) == ["old", "a0"]
    assert ids(await rig.turn(2)) == []
    rig.clock.go(10)
    assert "older" in ids(await rig.turn(2))


async def test_claims_and_costs_of_a_tenant_bound_each_other(rig: Rig) -> None:
    await rig.declare(tenant_limits=[Limit("3/10s"), TOKENS])
    await rig.add("a0", "a1", "a2", "a3", lane="@a", cost="tokens:40")
    assert ids(await rig.turn(10)) == ["a0", "a1"]
    dump = await rig.dump()
    rig.clock.go(10)
    assert ids(await rig.turn(10)) == ["a2", "a3"]
    assert "claims:10000000@a" in dump
    assert "claims:10000000/tokens@a" in dump


# -- looking, changing --------------------------------------------------------------------------


async def test_explain_names_the_limit_that_has_no_room(rig: Rig) -> None:
    await rig.declare(limits=[TOKENS])
    await add(rig, a=60, b=30, c=50, d=5)
    await rig.turn(1)
    rig.clock.go(1)
    await rig.turn(1)
    for job in "cd":
        last = (await rig.engine.explain("q", job)).gates[-1]
        assert last == ("limit", "100/10000000/tokens", T0 + 10 * SECOND)


async def test_a_limit_is_changed_for_the_next_claim(rig: Rig) -> None:
    await rig.declare(limits=[TOKENS])
    await add(rig, a=60, b=60)
    await rig.turn(5)
    await rig.edit(costs="120/10000000/tokens")
    assert ids(await rig.turn(5)) == ["b"]


@pytest.mark.parametrize("text", ["1/2", "0/5/tokens", "a/5/tokens", "5/5/To kens", "5/5/tokens "])
async def test_what_is_no_limit_by_cost_is_refused(rig: Rig, text: str) -> None:
    await rig.declare(limits=[TOKENS])
    await rig.remember()
    with pytest.raises(ConfigError):
        await rig.edit(costs=text)
    assert await rig.is_untouched()


async def test_a_job_larger_than_a_claim_may_be_is_claimed_alone_under_a_limit_by_cost(
    rig: Rig,
) -> None:
    await rig.declare(limits=[TOKENS])
    await rig.add("large", body=b"x" * (9 << 20), cost="tokens:5")
    await rig.add("small", cost="tokens:5")
    assert ids(await rig.turn(5)) == ["large"]
    assert ids(await rig.turn(5)) == ["small"]


async def test_a_tenant_that_waits_is_served_at_once_when_its_limit_by_cost_is_raised(
    rig: Rig,
) -> None:
    await rig.declare(tenant_limits=[TOKENS])
    await rig.add("a0", "a1", lane="@a", cost="tokens:80")
    assert ids(await rig.turn(5)) == ["a0"]
    assert ids(await rig.turn(5)) == []
    await rig.declare(tenant_limits=[Limit("200/10s", cost="tokens")])
    assert ids(await rig.turn(5)) == ["a1"]
