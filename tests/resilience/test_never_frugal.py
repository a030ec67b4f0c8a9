"""A worker warns of tasks that should be frugal beyond a soft share, where no budget has one."""

from __future__ import annotations

from typing import Any

import pytest

from faena import Budget, Faena, Price
from faena.engine.calls import resilience
from faena.resilience.money import TOTALS, total_settings
from tests._support.eventually import eventually
from tests._support.working import Working

WORDS = (
    "queue answers: task answer is never frugal, because no budget of its upstreams (ai) and no "
    "total budget has a soft share"
)


async def _small(_number: int) -> None: ...


async def _warnings(
    shop: Faena,
    working: Working,
    caplog: pytest.LogCaptureFixture,
    *budgets: Budget,
    **options: Any,
) -> list[str]:
    """What a worker has said when it has run a job and looked at its upstreams."""
    ai = shop.upstream("ai", prices=[Price("call", "1 USD")], budgets=budgets)
    queue = shop.queue("answers")

    @queue.task(upstreams=[ai], **options)
    async def answer(_number: int) -> None: ...

    other = shop.upstream("other", prices=[Price("call", "1 EUR")])

    @queue.task(upstreams=[other], frugal_priority="bulk")
    async def witness(_number: int) -> None: ...

    def is_seen() -> bool:
        return any("task witness is never frugal" in one for one in caplog.messages)

    await answer.enqueue(1)
    async with working(shop):
        await eventually(is_seen)
    assert witness.name == "witness"
    return [one for one in caplog.messages if "task answer is never" in one]


@pytest.mark.parametrize("options", [{"cheaper": _small}, {"frugal_priority": "bulk"}])
async def test_where_no_budget_has_one(
    shop: Faena, working: Working, caplog: pytest.LogCaptureFixture, options: dict[str, Any]
) -> None:
    shop.total_budgets([Budget("50 BRL", soft=0.5)])
    (warning,) = await _warnings(shop, working, caplog, Budget("50 USD"), **options)
    assert warning.startswith(WORDS)


async def test_not_where_the_upstream_has_one(
    shop: Faena, working: Working, caplog: pytest.LogCaptureFixture
) -> None:
    budget = Budget("50 USD", soft=0.8)
    assert not await _warnings(shop, working, caplog, budget, cheaper=_small)


@pytest.mark.parametrize("is_own", [False, True])
async def test_not_where_a_total_has_one_of_this_or_another_program(
    shop: Faena, working: Working, caplog: pytest.LogCaptureFixture, *, is_own: bool
) -> None:
    totals = [Budget("50 USD", soft=0.8)]
    if is_own:
        shop.total_budgets(totals)
    else:
        engine = (await shop.runtime()).engine
        await resilience.declare(engine, {TOTALS: total_settings(totals)})
    assert not await _warnings(shop, working, caplog, cheaper=_small)
