"""That a panic has ended may be lost, so a process asks again after a few seconds."""

from __future__ import annotations

import time

import pytest

from faena import Faena
from faena.resilience.push import Change, UpstreamPush


@pytest.mark.parametrize("wait_us", [0, 3_600_000_000])
async def test_a_panic_that_was_heard_of_closes_for_some_seconds_only(
    shop: Faena, wait_us: int
) -> None:
    afip = shop.upstream("afip")
    runtime = await shop.runtime()
    push = UpstreamPush(runtime.engine, runtime.gate, {})
    push._obey(Change("afip", "", "panic", wait_us))
    closing = runtime.gate.group([afip], "").closing()
    assert closing is not None
    assert 0 < closing.until - time.monotonic() <= 5


async def test_one_that_is_forgotten_is_closed_for_no_reason(shop: Faena) -> None:
    afip = shop.upstream("afip")
    runtime = await shop.runtime()
    push = UpstreamPush(runtime.engine, runtime.gate, {})
    for state in ("open", "rate_limited"):
        push._obey(Change("afip", "", state, 60_000_000))
    push._obey(Change("afip", "", "closed", 0))
    assert (closing := runtime.gate.group([afip], "").closing())
    assert closing.reason == "rate_limited", "the pause goes on"
    push._obey(Change("afip", "", "forgotten", 0))
    assert runtime.gate.group([afip], "").closing() is None
