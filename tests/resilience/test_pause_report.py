"""Of several pauses that are reported together, the longest counts for all processes."""

from __future__ import annotations

from faena import Faena, RateLimited
from faena.resilience.permits import Permit


async def test_of_pauses_that_are_reported_together_the_longest_counts(shop: Faena) -> None:
    afip = shop.upstream("afip")
    gate = (await shop.runtime()).gate
    group = gate.group([afip], "")
    for seconds in (600, 1):
        Permit(group.permits, afip).end(RateLimited(retry_after=seconds))
    await gate.flush()
    view = await afip.view()
    assert view.no_calls_until is not None
    assert view.no_calls_until > view.at + 500_000_000
