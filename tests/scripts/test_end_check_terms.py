"""A program that wants more failures in a row ends no trouble that is there."""

from __future__ import annotations

from tests._support.feature_rig import FeatureRig
from tests._support.rig import SECOND

AFIP = "invoicing.afip"


async def test_a_failing_check_goes_on_failing_though_more_failures_are_wanted(
    features: FeatureRig,
) -> None:
    await features.declare(check="offline")
    for failures in (1, 5):
        features.clock.go(10)
        owner = str(features.clock.now)
        assert await features.calls.begin_check(AFIP, owner, 5 * SECOND) == 0
        await features.calls.end_check(AFIP, owner, "no", every_us=SECOND, failures=failures)
        assert await features.told() == "offline"
