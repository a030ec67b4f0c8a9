"""What a child does with a permit that was lent, and what the worker makes of its answer."""

from __future__ import annotations

import time

from faena import Breaker, Budget, Faena, Price
from faena.engine.calls.resilience import BAD
from faena.resilience.lending import Borrower, CallEnd, Loan, Returned, take_back
from faena.resilience.permits import permit_of
from faena.resilience.question import Wanted
from tests.resilience.test_odd_ends import Holding


async def test_a_permit_that_has_lapsed_is_not_used_in_a_child(shop: Faena) -> None:
    ai = shop.upstream("ai", prices=[Price("call", "1 USD")], budgets=[Budget("1 USD")])
    now = time.monotonic()
    for left_s, is_used in ((60, True), (0, False)):
        loan = Loan("answer", "", "", False, now, now + left_s)
        borrower = Borrower(loan, [ai])
        assert (permit_of(borrower, ai) is not None) == is_used


async def test_a_failure_in_a_child_drops_what_was_granted_in_advance(shop: Faena) -> None:
    afip = shop.upstream("afip", breaker=Breaker(volume=100, open="10m"))
    gate = (await shop.runtime()).gate
    (answer,) = await gate.admit([Wanted(gate.group([afip], ""), 1)])
    group = answer.permits.group
    group.permits.left, group.permits.good_until = 5, time.monotonic() + 600
    ended = CallEnd("afip", BAD, is_slow=False, wait_us=0, micro=None)
    take_back(Holding(answer.permits), Returned(("afip",), None, (ended,)))
    assert group.permits.left == 0
