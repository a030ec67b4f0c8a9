"""A marked call that still runs when its job is given up pays for itself, once."""

from __future__ import annotations

from faena import Budget, Faena, Price
from faena.resilience.permits import drop_permits, permit_of
from faena.resilience.question import Wanted
from tests.resilience.test_money import CENT, _spent
from tests.resilience.test_odd_ends import Holding


async def test_a_marked_call_of_a_job_that_is_given_up_is_paid_once(shop: Faena) -> None:
    ai = shop.upstream("ai", prices=[Price("call", "0.01 USD")], budgets=[Budget("1 USD")])
    gate = (await shop.runtime()).gate
    (answer,) = await gate.admit([Wanted(gate.group([ai], ""), 1)])
    holder = Holding(answer.permits)
    call = permit_of(holder, ai)
    assert call is not None
    drop_permits(holder, is_running=True)
    call.end(None)
    assert await _spent(shop, "s/ai") == CENT
