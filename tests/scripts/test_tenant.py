"""tenant.lua"""

from __future__ import annotations

import pytest

from faena.engine.gates import LaneState
from faena.errors import ShardsChanged
from faena.inspection.explanation import explanation_of
from faena.inspection.gate import gates_of
from faena.limits import Limit
from tests._support.rig import SECOND, T0, Rig
from tests._support.transfer import Transfer


async def test_an_override_is_read_as_it_was_written_and_ends_by_itself(rig: Rig) -> None:
    await rig.declare()
    changes = {"weight": "2.5", "limits": "5/1000000"}
    await rig.engine.tenant("q", "@a", changes, by="ops", duration_us=10 * SECOND)
    override = {
        "weight": "2.5",
        "limits": "5/1000000",
        "by": "ops",
        "at": str(T0),
        "ends_at": str(T0 + 10 * SECOND),
    }
    assert await rig.engine.tenant("q", "@a") == LaneState(override, 0, 0, None, ())
    rig.clock.go(10)
    assert (await rig.engine.tenant("q", "@a")).override == {}
    assert "tenants" not in await rig.dump()


async def test_whoever_knows_older_shards_is_refused_and_nothing_changes(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.add("a", lane="@a")
    await transfer.know_of_change(epoch=2)
    await rig.remember()
    for changes in ({"held_until": "0", "reason": "unpaid"}, None):
        with pytest.raises(ShardsChanged):
            await rig.engine.tenant("q", "@a", changes, epoch=1, by="ops")
    assert await rig.is_untouched()
    await rig.engine.tenant("q", "@a", {"weight": "2"}, epoch=2, by="ops")
    assert (await rig.engine.tenant("q", "@a", epoch=3)).override["weight"] == "2"


async def test_a_shard_that_was_retired_takes_no_decision(rig: Rig, transfer: Transfer) -> None:
    await transfer.know_of_change(epoch=2)
    assert await transfer.moving.retire("q", 2)
    await rig.remember()
    with pytest.raises(ShardsChanged):
        await rig.engine.tenant("q", "@a", {"weight": "2"}, epoch=1, by="ops")
    assert await rig.is_untouched()


async def test_a_lane_that_leaves_is_decided_about_at_its_new_shard_only(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.add("a", lane="@a")
    await transfer.hand_over("@a")
    await rig.remember()
    with pytest.raises(ShardsChanged):
        await rig.engine.tenant("q", "@a", {"weight": "2"}, by="ops")
    assert await rig.is_untouched()
    assert (await rig.engine.tenant("q", "@a")).live == 1  # it may be looked at


async def test_every_gate_in_front_of_a_tenant_s_jobs_is_named_as_explain_names_it(
    rig: Rig,
) -> None:
    limits = [Limit("1/10s"), Limit("100/min", cost="tokens")]
    await rig.declare(tenant_limits=limits, tenant_max_running=1)
    await rig.add("a1", "a2", lane="@a", cost="tokens:60")
    await rig.add("b1", lane="@b")
    await rig.turn(5)
    await rig.engine.tenant("q", "@a", {"held_until": "0", "reason": "unpaid"}, by="ops")

    gates = gates_of((await rig.engine.tenant("q", "@a")).gates)

    assert [(gate.name, gate.detail, gate.until) for gate in gates] == [
        ("tenant_held", "unpaid", None),
        ("tenant_max_running", "1", None),
        ("tenant_limit", "1/10s", T0 + 10 * SECOND),
        ("tenant_limit", "100/min of tokens", T0 + 60 * SECOND),
    ]
    explained = explanation_of("q", "a2", await rig.engine.explain("q", "a2"))
    assert [gate for gate in explained.gates if gate.name.startswith("tenant_")] == list(gates)


async def test_a_tenant_that_may_be_served_has_no_gate(rig: Rig) -> None:
    await rig.declare(tenant_limits=[Limit("2/10s")])
    await rig.add("a1", lane="@a")
    assert (await rig.engine.tenant("q", "@a")).gates == ()
