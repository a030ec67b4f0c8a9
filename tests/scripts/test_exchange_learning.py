"""exchange.lua: limits that fall when a provider refuses, and recover."""

from __future__ import annotations

from faena.limits import Limit
from faena.outcomes import Completed, Limited
from tests._support.rig import SECOND, Rig


async def claims(rig: Rig, want: int = 100) -> int:
    """How many are given now; all are completed."""
    claimed = (await rig.turn(want)).claimed
    await rig.turn(0, *((claim.id, claim.lease, Completed()) for claim in claimed))
    return len(claimed)


async def refuse(rig: Rig, outcome: Limited) -> None:
    """One job runs into the provider's refusal."""
    (claim,) = (await rig.turn(1)).claimed
    await rig.turn(0, (claim.id, claim.lease, outcome))


async def test_a_refused_queue_is_given_less_and_slowly_more_again(rig: Rig) -> None:
    await rig.declare(limits=[Limit("10/s")], learning=True)
    await rig.add(*(f"j{n:03d}" for n in range(200)))
    await refuse(rig, Limited(SECOND))
    rig.clock.go(1)
    given = []
    for _ in range(8):
        given.append(await claims(rig))
        rig.clock.go(1)
    assert given == [7, 8, 8, 9, 9, 10, 10, 10]
    assert "learned" not in await rig.dump()


async def test_it_falls_again_and_never_below_a_tenth(rig: Rig) -> None:
    await rig.declare(limits=[Limit("200/min")], learning=True)
    await rig.add(*(f"j{n:03d}" for n in range(300)))
    for _ in range(12):
        await refuse(rig, Limited(1))
        rig.clock.go(0.001)
    rig.clock.go(60)
    assert await claims(rig) == 30


async def test_without_learning_a_limit_stays_what_it_is(rig: Rig) -> None:
    await rig.declare(limits=[Limit("10/s")])
    await rig.add(*(f"j{n:03d}" for n in range(50)))
    await refuse(rig, Limited(SECOND))
    rig.clock.go(1)
    assert await claims(rig) == 10


async def test_a_tenant_learns_for_itself(rig: Rig) -> None:
    await rig.declare(tenant_limits=[Limit("10/s")], learning=True)
    for tenant in ("a", "b"):
        await rig.add(*(f"{tenant}{n:03d}" for n in range(50)), lane=f"@{tenant}")
    (claim,) = (await rig.turn(1)).claimed
    await rig.turn(0, (claim.id, claim.lease, Limited(SECOND, scope="tenant")))
    rig.clock.go(1)
    claimed = (await rig.turn(100)).claimed
    given = [sum(claim.id[0] == tenant for claim in claimed) for tenant in ("a", "b")]
    assert given == [7, 10]


async def test_a_tenant_learns_nothing_from_an_upstream_that_takes_no_calls(rig: Rig) -> None:
    await rig.declare(tenant_limits=[Limit("10/s")], learning=True)
    await rig.add("a", lane="@a")
    (claim,) = (await rig.turn(1)).claimed
    outcome = Limited(9 * SECOND, "tenant", "upstream afip")
    await rig.turn(0, (claim.id, claim.lease, outcome))
    state = await rig.engine.tenant(rig.queue, "@a")
    assert [gate.detail for gate in state.gates if gate.name == "tenant_held"] == ["upstream afip"]
    assert await rig.engine.command("HLEN", rig.queue, "learned") == 0
