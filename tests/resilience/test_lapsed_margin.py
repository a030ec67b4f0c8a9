"""A holder is taken for dead only some time after its longest call must have ended."""

from __future__ import annotations

import time

from faena import Budget, Faena, Price
from faena.engine.calls.resilience import SHARD
from faena.resilience.question import Wanted


async def test_what_is_reserved_outlives_the_longest_call(shop: Faena) -> None:
    ai = shop.upstream(
        "ai", prices=[Price("call", "1 USD")], budgets=[Budget("1 USD")], timeout="10m"
    )
    runtime = await shop.runtime()
    (answer,) = await runtime.gate.admit([Wanted(runtime.gate.group([ai], ""), 1)])
    ends_at = await runtime.engine.command("ZSCORE", SHARD, "lot_ends", answer.permits.stem)
    assert float(ends_at) / 1e6 - time.time() > 600, "its timeout, and what it takes to report"
    assert answer.permits.lapses_at - time.monotonic() > 600
