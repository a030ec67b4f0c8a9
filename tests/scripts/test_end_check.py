"""Health checks that fail often enough change a feature; one that goes well ends it."""

from __future__ import annotations

from tests._support.feature_rig import FeatureRig
from tests._support.rig import SECOND, T0

AFIP = "invoicing.afip"


async def check(features: FeatureRig, problem: str | None) -> None:
    """Run it once, ten seconds after the last time."""
    features.clock.go(10)
    owner = str(features.clock.now)
    assert await features.calls.begin_check(AFIP, owner, 5 * SECOND) == 0
    assert await features.calls.end_check(AFIP, owner, problem, every_us=5 * SECOND, failures=3)


async def test_so_many_failures_in_a_row_are_enough(features: FeatureRig) -> None:
    await features.declare(check="degraded", message="")
    for problem in ("a", "b", None, "c", "d"):
        await check(features, problem)
        assert await features.told() == "healthy"
    await check(features, "no answer")
    assert await features.told() == "degraded"
    (source,) = (await features.feature()).sources
    assert (source.source, source.reason, source.since) == ("check", "no answer", T0 + 60 * SECOND)
    await check(features, "still none")
    (source,) = (await features.feature()).sources
    assert (source.reason, source.since) == ("still none", T0 + 60 * SECOND)
    await check(features, None)
    assert await features.told() == "healthy"
    assert len(await features.events()) == 2


async def test_the_second_report_of_a_run_counts_nothing(features: FeatureRig) -> None:
    await features.declare(check="offline")
    await features.calls.begin_check(AFIP, "a", SECOND)
    for _ in range(4):
        await features.calls.end_check(AFIP, "a", "no", every_us=SECOND, failures=2)
    assert await features.told() == "healthy"


async def test_a_check_that_code_no_longer_has_says_nothing(features: FeatureRig) -> None:
    await features.declare(check="offline")
    for _ in range(3):
        await check(features, "no answer")
    assert await features.told() == "offline"
    await features.declare(check="")
    assert await features.told() == "healthy"
