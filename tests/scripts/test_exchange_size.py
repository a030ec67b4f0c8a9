"""exchange.lua: how much one claim may weigh, and how long its leases last."""

from __future__ import annotations

from faena.engine.scripts import Turn
from faena.limits import Limit
from tests._support.rig import SECOND, T0, Rig, score

MIB = 1024 * 1024
BODY = b"x" * (MIB - 4)
"""With its envelope, a spec of one MiB."""


async def add_large(rig: Rig, number: int, **facts: str) -> list[str]:
    jobs = [f"job{i:02d}" for i in range(number)]
    for job in jobs:
        await rig.add(job, body=BODY, **facts)
    return jobs


async def test_a_claim_takes_what_fits_and_leaves_the_rest_in_its_place(rig: Rig) -> None:
    jobs = await add_large(rig, 11)
    await rig.engine.wire.call("DEL", rig.engine.wake_key("q"))
    first = await rig.turn(40, call="lease1")
    assert [claim.id for claim in first.claimed] == jobs[:8]
    assert {len(claim.spec or b"") for claim in first.claimed} == {MIB}
    assert (first.gate, first.more) == ("", True)
    taken = await rig.dump()
    assert taken["ready"] == [(job, score(T0 + 9 + i)) for i, job in enumerate(jobs[8:])]
    assert set(taken["leases"]) == {job for job, _ in taken["running"]} == set(jobs[:8])
    assert taken["wake"] == [("work", 0.0)]
    second = await rig.turn(40)
    assert [claim.id for claim in second.claimed] == jobs[8:]
    assert not second.more


async def test_a_claim_that_just_fits_is_not_cut(rig: Rig) -> None:
    await add_large(rig, 8)
    exchanged = await rig.turn(40)
    assert (len(exchanged.claimed), exchanged.more) == (8, False)


async def test_a_job_larger_than_a_claim_is_claimed_alone(rig: Rig) -> None:
    await rig.add("huge", body=b"x" * (9 * MIB))
    await rig.add("small")
    assert [claim.id for claim in (await rig.turn(5)).claimed] == ["huge"]
    assert [claim.id for claim in (await rig.turn(5)).claimed] == ["small"]


async def test_what_did_not_fit_has_spent_no_limit_and_is_free_at_once(rig: Rig) -> None:
    await rig.declare(limits=[Limit("9/min")])
    await add_large(rig, 11)
    first = await rig.turn(40)
    assert (len(first.claimed), first.gate, first.more) == (8, "", True)
    second = await rig.turn(40)
    assert (len(second.claimed), second.gate, second.more) == (1, "limit", False)


async def test_what_did_not_fit_does_not_run_for_its_tenant(rig: Rig) -> None:
    await rig.declare(tenant_max_running=9)
    await add_large(rig, 11, lane="@t")
    assert len((await rig.turn(40)).claimed) == 7
    taken = await rig.dump()
    assert taken["lanes"] == {"@t": "11000007"}
    assert "parked" not in taken  # it was full for as long as they were its own
    assert [len((await rig.turn(40)).claimed) for _ in range(2)] == [2, 0]


async def test_what_did_not_fit_has_spent_no_limit_of_its_tenant(rig: Rig) -> None:
    await rig.declare(tenant_limits=[Limit("9/min")])
    await add_large(rig, 11, lane="@t")
    assert [len((await rig.turn(40)).claimed) for _ in range(3)] == [7, 2, 0]


async def test_what_did_not_fit_has_cost_its_tenant_no_turn(rig: Rig) -> None:
    for tenant in "ab":
        for number in range(6):
            await rig.add(f"{tenant}{number}", body=BODY, lane=f"@{tenant}")
    first = await rig.turn(40)
    assert [claim.id for claim in first.claimed] == [*(f"a{i}" for i in range(6)), "b0"]
    taken = await rig.dump()
    assert (taken["ring"], taken["debts"]) == ([("@b", 1.0)], [("@a", 6.0)])
    assert taken["lane:@b"] == [(f"b{i}", score(T0 + 7 + i)) for i in range(1, 6)]
    given = taken[f"shares:{T0 // (60 * SECOND)}"]
    assert {lane: share[0] for lane, share in given.items()} == {"@a": 6000, "@b": 1000}
    await rig.add("c0", lane="@c")
    assert [claim.id for claim in (await rig.turn(1)).claimed] == ["b1"]


async def test_what_did_not_fit_is_given_back_by_the_weight_of_its_tenant(rig: Rig) -> None:
    await rig.engine.tenant("q", "@t", {"weight": "4"}, by="ops")
    await add_large(rig, 11, lane="@t")
    assert len((await rig.turn(40)).claimed) == 7
    assert (await rig.dump())["ring"] == [("@t", 7 / 4)]


async def test_a_claim_that_is_full_is_closed_for_other_tenants_too(rig: Rig) -> None:
    await rig.declare(limits=[Limit("1000/min", cost="tokens")])
    large = await add_large(rig, 11, lane="@t")
    await rig.add("small", lane="@u")
    first = await rig.turn(40)
    assert ([claim.id for claim in first.claimed], first.more) == (large[:7], True)


async def test_a_cut_claim_that_is_repeated_is_answered_alike(rig: Rig) -> None:
    await add_large(rig, 9)
    first = await rig.turn(9, call="call5000")
    await rig.remember()
    assert await rig.turn(9, call="call5000") == first
    assert await rig.is_untouched()


async def test_leases_last_what_the_worker_needs_when_the_setting_is_shorter(rig: Rig) -> None:
    await rig.add("a", "b")
    await rig.edit(lease_us=SECOND)
    for call, least_us in (("1", 3 * SECOND), ("2", 0)):
        turn = Turn(call, 1, least_lease_us=least_us)
        await rig.engine.exchange("q", "worker", "worker", turn)
    assert (await rig.dump())["running"] == [("b", T0 + SECOND), ("a", T0 + 3 * SECOND)]


async def test_whoever_claims_is_told_of_the_lease_that_ends_first(rig: Rig) -> None:
    await rig.add("a", "b")
    await rig.turn(1)
    await rig.edit(lease_us=SECOND)
    assert (await rig.turn(1)).next_at == T0 + SECOND
