"""What calls have cost is kept for 90 days after the end of its month, and no longer."""

from __future__ import annotations

from faena.engine.calls.resilience import SHARD, Settled
from faena.resilience.money import Budget, Price
from tests._support.upstream_rig import MONEY_T0, UpstreamRig

DAY_S = 86_400


async def test_costs_are_kept_for_ninety_days_after_their_month(upstreams: UpstreamRig) -> None:
    upstreams.clock.now = MONEY_T0
    await upstreams.declare("ai", prices=[Price("call", "1 USD")], budgets=[Budget("5 USD")])
    await upstreams.admit(settled=[Settled("lot", 0, "acme", "answer", ["ai", 3 * 10**6])])
    for period in ("20261116", "202611"):
        for name in (f"spent:{period}", f"spenders:{period}/ai"):
            ttl_s = await upstreams.engine.command("TTL", SHARD, name)
            assert 120 * DAY_S < ttl_s <= 121 * DAY_S, name
        ttl_s = await upstreams.engine.command("TTL", SHARD, "warned:20261116")
        assert ttl_s > 31 * DAY_S, "or thresholds of a month would be told twice"
