"""Permits in advance may be used a moment later, whatever else the same call asks for."""

from __future__ import annotations

import pytest

from faena.engine.calls import upstreams as calls
from faena.engine.calls.resilience import Ask
from tests._support.upstream_rig import UpstreamRig


@pytest.mark.parametrize("first", [0, 1])
async def test_what_is_granted_in_advance_counts_for_as_long_as_it_is_good(
    upstreams: UpstreamRig, first: int
) -> None:
    await upstreams.declare(limits=["1000/s"])
    asks = [Ask(["afip"], "", 1, f"p{i}", 5 if i == first else 0) for i in range(2)]
    grants = (await upstreams.admit(asks)).grants
    assert [one.advance for one in grants][first] == 5
    upstreams.clock.go(1)
    (view,) = await calls.views(upstreams.engine)
    assert view.limits[0].used == 7, "a call may have been made 50 ms later"
