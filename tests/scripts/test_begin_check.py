"""A health check is run by one process at a time."""

from __future__ import annotations

from tests._support.feature_rig import FeatureRig
from tests._support.rig import SECOND

LEASE = 5 * SECOND


async def test_the_first_who_asks_runs_it(features: FeatureRig) -> None:
    assert await features.calls.begin_check("push", "a", LEASE) == 0
    features.clock.go(2)
    assert await features.calls.begin_check("push", "b", LEASE) == 3 * SECOND
    assert await features.calls.begin_check("voice", "b", LEASE) == 0


async def test_the_same_question_is_answered_again(features: FeatureRig) -> None:
    for _ in range(2):
        assert await features.calls.begin_check("push", "a", LEASE) == 0


async def test_another_takes_over_from_one_that_does_not_end(features: FeatureRig) -> None:
    await features.calls.begin_check("push", "a", LEASE)
    features.clock.go(5)
    assert await features.calls.begin_check("push", "b", LEASE) == 0
    assert not await features.calls.end_check("push", "a", None, every_us=SECOND, failures=1)
    assert await features.calls.end_check("push", "b", None, every_us=SECOND, failures=1)


async def test_between_two_runs_everybody_waits(features: FeatureRig) -> None:
    await features.calls.begin_check("push", "a", LEASE)
    await features.calls.end_check("push", "a", None, every_us=10 * SECOND, failures=1)
    features.clock.go(4)
    assert await features.calls.begin_check("push", "b", LEASE) == 6 * SECOND
    features.clock.go(6)
    assert await features.calls.begin_check("push", "c", LEASE) == 0
