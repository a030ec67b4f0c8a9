"""A wrong `spend` is a fault of the program: the upstream is not blamed, and the call is paid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from faena import Breaker, Budget, Faena, Price, Retry
from faena.errors import ConfigError, JobFailed
from faena.resilience.upstream import Upstream
from tests._support.eventually import eventually
from tests._support.working import Working
from tests.resilience.test_money import CENT, _is_nothing_reserved, _spent

WRONG: dict[str, tuple[Callable[[Any], None], str]] = {
    "unknown": (lambda to: to.spend(tokens=1), "got 'tokens'; valid: "),
    "negative": (lambda to: to.spend(call=-1), "used of call must be a whole number"),
    "fraction": (lambda to: to.spend({"call": 1.5}), "used of call must be a whole number"),
    "large": (lambda to: to.spend(call=10**12), "a call must cost at most"),
    "list": (lambda to: to.spend(["call"]), "used must be a mapping"),
}


def _ai(app: Faena) -> Upstream:
    budgets = [Budget("100 USD")]
    prices = [Price("call", "0.01 USD"), Price("image", "600000000 USD")]
    return app.upstream("ai", breaker=Breaker(volume=1), prices=prices, budgets=budgets)


@pytest.mark.parametrize("kind", WRONG)
async def test_a_wrong_spend_of_a_call_opens_no_breaker(shop: Faena, kind: str) -> None:
    ai = _ai(shop)
    spend, words = WRONG[kind]
    for _ in range(3):
        with pytest.raises(ConfigError, match=words):
            async with ai.call() as call:
                spend(call)
    assert await _spent(shop, "s/ai") == 3 * CENT
    view = await ai.view()
    assert (view.state, view.calls) == ("closed", 0)
    await eventually(lambda: _is_nothing_reserved(shop))


@pytest.mark.parametrize("kind", WRONG)
async def test_a_wrong_spend_of_a_job_opens_no_breaker(
    shop: Faena, working: Working, kind: str
) -> None:
    ai = _ai(shop)
    spend, words = WRONG[kind]
    queue = shop.queue("answers", retry=Retry.never())

    @queue.task(upstreams=[ai])
    async def answer() -> None:
        spend(ai)

    receipt = await answer.enqueue()
    async with working(shop):
        with pytest.raises(JobFailed, match=words):
            await receipt.handle.result(timeout="60s")
    assert await _spent(shop, "s/ai") == CENT
    assert (await ai.view()).state == "closed"
    await eventually(lambda: _is_nothing_reserved(shop))


async def test_of_several_upstreams_all_are_paid(shop: Faena, working: Working) -> None:
    ai, sms = _ai(shop), shop.upstream("sms", prices=[Price("call", "0.02 USD")])
    queue = shop.queue("answers", retry=Retry.never())

    @queue.task(upstreams=[ai, sms])
    async def answer() -> None:
        ai.spend(tokens=1)

    receipt = await answer.enqueue()
    async with working(shop):
        with pytest.raises(JobFailed, match="got 'tokens'; valid: "):
            await receipt.handle.result(timeout="60s")
    assert (await _spent(shop, "s/ai"), await _spent(shop, "s/sms")) == (CENT, 2 * CENT)


async def test_what_was_said_together_must_not_be_too_much(shop: Faena) -> None:
    ai = _ai(shop)
    async with ai.call() as call:
        call.spend(image=1)
        with pytest.raises(ConfigError, match="a call must cost at most"):
            call.spend(image=1)
