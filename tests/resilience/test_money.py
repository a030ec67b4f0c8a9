"""Prices and budgets, and what jobs and calls are charged."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime
from typing import Any

import pytest

from faena import Budget, Faena, Job, Price, Retry, UpstreamUnavailable
from faena.engine.calls.resilience import SHARD
from faena.engine.scripts import texts
from faena.errors import ConfigError
from faena.resilience.money import PriceList, read_money
from faena.resilience.upstream import Upstream
from faena.values.money import Money, amount_text
from tests._support.eventually import eventually
from tests._support.working import Working

CENT = 10_000
TOKENS = [
    Price("gpt-4.input", "0.03 USD", per=1000),
    Price("gpt-4.output", "0.06 USD", per=1000),
]


async def _spent(app: Faena, scope: str) -> int:
    """What was spent in all."""
    runtime = await app.runtime()
    await runtime.gate.flush()
    day = f"{datetime.now(UTC):%Y%m}"
    found = await runtime.engine.command("HGET", SHARD, f"spent:{day}", scope)
    return int(found or 0)


async def _reserved(app: Faena) -> list[str]:
    runtime = await app.runtime()
    await runtime.gate.flush()
    return texts(await runtime.engine.command("HKEYS", SHARD, "reserved"))


def _sms(app: Faena, amount: str = "100 USD", **options: Any) -> Upstream:
    prices = [Price("call", "0.01 USD"), Price("segment", "0.0079 USD")]
    budgets = [Budget(amount, per="month")]
    return app.upstream("sms", prices=prices, budgets=budgets, **options)


# -- jobs ------------------------------------------------------------------------------------------


async def test_a_job_costs_what_was_estimated(shop: Faena, working: Working) -> None:
    sms = _sms(shop)
    queue = shop.queue("messages", concurrency=20)

    @queue.task(upstreams=[sms])
    async def send(_number: int) -> None: ...

    receipts = await send.enqueue_many(list(range(50)), tenant="acme")
    async with working(shop):
        for receipt in receipts:
            await receipt.handle.result(timeout="60s")
    assert await _spent(shop, "s/sms") == 50 * CENT
    assert await _spent(shop, "k/sms/send") == 50 * CENT
    await eventually(lambda: _is_nothing_reserved(shop))


async def test_a_job_says_what_it_has_used(shop: Faena, working: Working) -> None:
    sms = _sms(shop, estimate={"segment": 10})
    queue = shop.queue("messages")

    @queue.task(upstreams=[sms])
    async def send(segments: int) -> None:
        sms.spend(segment=segments)
        sms.spend(call=1)

    receipt = await send.enqueue(3)
    async with working(shop):
        await receipt.handle.result(timeout="60s")
    assert await _spent(shop, "s/sms") == 3 * 7_900 + CENT


async def test_what_failed_costs_nothing_unless_it_may_have_been_done(
    shop: Faena, working: Working
) -> None:
    sms = _sms(shop)
    queue = shop.queue("messages", retry=Retry.never())
    errors = {"refused": ConnectionRefusedError, "timed out": TimeoutError}

    @queue.task(upstreams=[sms])
    async def send(how: str) -> None:
        raise errors[how]

    async with working(shop):
        receipt = await send.enqueue("refused")
        await eventually(lambda: _is_dead(receipt))
        assert await _spent(shop, "s/sms") == 0
        receipt = await send.enqueue("timed out")
        await eventually(lambda: _is_dead(receipt))
        assert await _spent(shop, "s/sms") == CENT
    assert await _reserved(shop) == []


async def _is_dead(receipt: Any) -> bool:
    return (await receipt.handle.view()).state == "dead"


async def test_jobs_wait_when_the_money_is_spent(shop: Faena, working: Working) -> None:
    sms = _sms(shop, "0.05 USD")
    queue = shop.queue("messages", concurrency=20)
    sent: list[int] = []

    @queue.task(upstreams=[sms])
    async def send(number: int) -> None:
        sent.append(number)

    await send.enqueue_many(list(range(30)))
    async with working(shop):

        async def is_held() -> bool:
            return [hold.reason for hold in (await queue.overview()).holds] == ["upstream sms"]

        await eventually(is_held)
        assert len(sent) == 5
        assert (await queue.overview()).counts["ready"] == 25
    assert await _spent(shop, "s/sms") == 5 * CENT


async def test_a_soft_limit_asks_for_cheaper_calls(shop: Faena, working: Working) -> None:
    prices = [Price("call", "0.01 USD")]
    ai = shop.upstream("ai", prices=prices, budgets=[Budget("0.10 USD", soft=0.5)])
    queue = shop.queue("answers", concurrency=1)
    seen: list[bool] = []

    @queue.task(upstreams=[ai])
    async def answer(_number: int) -> None:
        seen.append(ai.is_frugal)

    receipts = await answer.enqueue_many(list(range(8)))
    async with working(shop):
        for receipt in receipts:
            await receipt.handle.result(timeout="60s")
    assert seen == [False] * 5 + [True] * 3


# -- calls -----------------------------------------------------------------------------------------


async def test_a_call_says_what_it_has_used(shop: Faena) -> None:
    ai = shop.upstream(
        "ai",
        prices=TOKENS,
        estimate={"gpt-4.input": 1000, "gpt-4.output": 1000},
        budgets=[Budget("1 USD")],
    )
    async with ai.call(tenant="acme") as call:
        assert not call.is_frugal
        call.spend({"gpt-4.input": 812})
        call.spend(**{"gpt-4.output": 90})
    assert await _spent(shop, "s/ai") == 24_360 + 5_400
    assert await _reserved(shop) == []


async def test_a_call_may_have_an_estimate_of_its_own(shop: Faena) -> None:
    ai = shop.upstream(
        "ai", prices=TOKENS, estimate={"gpt-4.input": 1}, budgets=[Budget("0.03 USD")]
    )
    with pytest.raises(UpstreamUnavailable, match="budget"):
        async with ai.call(estimate={"gpt-4.input": 1001}):
            raise AssertionError("it was permitted")
    async with ai.call(estimate={"gpt-4.input": 1000}):
        with pytest.raises(UpstreamUnavailable, match="reserved"):
            async with ai.call():
                raise AssertionError("it was permitted")
    assert await _spent(shop, "s/ai") == 30_000


async def test_many_calls_at_once_do_not_exceed_a_budget(shop: Faena) -> None:
    ai = shop.upstream("ai", prices=[Price("call", "0.01 USD")], budgets=[Budget("1.23 USD")])
    made: list[int] = []
    refused: list[str] = []

    async def one(number: int) -> None:
        try:
            async with ai.call():
                made.append(number)
                await asyncio.sleep(0)
        except UpstreamUnavailable as error:
            refused.append(error.reason)

    await asyncio.gather(*map(one, range(300)))
    assert {*refused} == {"reserved"}
    assert 120 <= len(made) <= 123, "all but what was granted in advance and comes back"
    assert await _spent(shop, "s/ai") == len(made) * CENT


async def test_what_was_granted_in_advance_comes_back(shop: Faena) -> None:
    ai = shop.upstream("ai", prices=[Price("call", "0.01 USD")], budgets=[Budget("1000 USD")])
    for _ in range(20):
        async with ai.call():
            pass
    await eventually(lambda: _is_nothing_reserved(shop))
    assert await _spent(shop, "s/ai") == 20 * CENT


async def _is_nothing_reserved(app: Faena) -> bool:
    return await _reserved(app) == []


# -- amounts and prices ----------------------------------------------------------------------------


def test_amounts_are_exact() -> None:
    assert read_money("price", "0.0079 USD") == Money(7_900, "USD")
    assert str(Money(7_900, "USD")) == "0.0079 USD"
    assert str(Money(50_000_000, "ARS")) == "50.00 ARS"
    assert str(Money(12_300_000, "USD")) == "12.30 USD"
    assert str(Money(1_234_567_890_000, "USD")) == "1234567.89 USD"
    assert str(Money(1, "USD")) == "0.000001 USD"
    assert str(Money(0, "USD")) == "0.00 USD"
    assert amount_text(Money(1_234_567_890_000, "USD"), thousands=",") == "1,234,567.89 USD"
    assert amount_text(Money(-500_000, "USD"), thousands=",") == "-0.50 USD"


def test_costs_are_rounded_up() -> None:
    prices = PriceList([Price("token", "0.0005 USD", per=1000)])
    assert prices.cost({"token": 1}) == 1
    assert prices.cost({"token": 2}) == 1
    assert prices.cost({"token": 3}) == 2


def test_a_price_holds_from_its_first_day_on() -> None:
    prices = PriceList(
        [
            Price("call", "1 USD", until="2026-01-01"),
            Price("call", "2 USD", since=date(2026, 1, 1)),
        ]
    )
    assert prices.cost({"call": 1}, date(2025, 12, 31)) == 1_000_000
    assert prices.cost({"call": 1}, date(2026, 1, 1)) == 2_000_000


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Price("call", "-1 USD"), "price amount must be an amount such as '0.01 USD'"),
        (lambda: Price("call", "1"), "price amount must be an amount"),
        (lambda: Price("call", "1 USB"), "must be in a currency of ISO 4217"),
        (lambda: Price("call", "0.0000001 USD"), "a whole number of millionths"),
        (lambda: Price("call", "1 USD", per=0), "price per must be a whole number from 1"),
        (lambda: Price("call", "1 USD", since="soon"), "price since must be a date"),
        (
            lambda: Price("call", "1 USD", since="2026-01-01", until="2026-01-01"),
            "price until must be after since",
        ),
        (lambda: Budget("0 USD"), "budget amount must be above 0, got 0 USD"),
        (lambda: Budget("99999999999 USD"), "at most 1000000000.00 USD, got 99999999999 USD"),
        (lambda: Budget("5 USD", per="year"), "'day' or 'month'"),
        (lambda: Budget("5 USD", soft=2), "budget soft must be a number from 0.001 to 1"),
        (lambda: Budget("5 USD", thresholds=[0]), "budget threshold must be a whole number"),
        (lambda: Budget("5 USD", thresholds=80), "budget thresholds must be a list"),
        (lambda: Budget("5 USD", sof=0.5), "did you mean 'soft'"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make()


CALL = Price("call", "1 USD")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budgets": [Budget("5 USD")]}, "prices must be given with budgets"),
        ({"prices": [CALL, CALL]}, "prices of call must not overlap"),
        ({"prices": [CALL, Price("b", "1 EUR")]}, "prices must all be in USD, got EUR"),
        ({"prices": [CALL], "budgets": [Budget("5 EUR")]}, "budgets must all be in USD"),
        ({"prices": [CALL], "budgets": [Budget("0.9 USD")]}, "budgets must pay for one call"),
        ({"prices": [Price("token", "1 USD")]}, "estimate must say what a call uses at most"),
        (
            {"prices": [CALL], "estimate": {"cal": 1}},
            "one that has a price, got 'cal'; did you mean 'call'?",
        ),
        ({"prices": [CALL], "estimate": {"call": -1}}, "estimate of call must be a whole number"),
        ({"prices": [CALL], "estimate": 3}, "estimate must be a mapping"),
        ({"prices": CALL}, "prices must be a list"),
        ({"prices": [CALL], "budgets": [Budget("5 USD"), Budget("6 USD")]}, "one for a period"),
    ],
)
def test_an_upstream_with_wrong_prices_is_refused(
    app: Faena, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        app.upstream("ai", **options)


def test_total_budgets_are_of_no_single_tenant(app: Faena) -> None:
    with pytest.raises(ConfigError, match="of no single tenant"):
        app.total_budgets([Budget("5 USD", each_tenant=True)])


def test_spend_belongs_into_a_job_or_a_call(app: Faena) -> None:
    ai = app.upstream("ai", prices=[CALL])
    with pytest.raises(
        ConfigError, match=r"as call.spend\(\) in `async with ai.call\(\) as call:`"
    ):
        ai.spend(call=1)


# -- the cheaper handler ---------------------------------------------------------------------------


async def test_a_cheaper_handler_runs_while_a_budget_is_short(
    shop: Faena, working: Working
) -> None:
    prices = [Price("call", "0.01 USD"), Price("small", "0.001 USD")]
    ai = shop.upstream("ai", prices=prices, budgets=[Budget("0.10 USD", soft=0.5)])
    queue = shop.queue("answers", concurrency=1)

    async def small_answer(number: int, job: Job) -> str:
        ai.spend(small=1)
        return f"small {number} of {job.task}"

    @queue.task(upstreams=[ai], cheaper=small_answer)
    async def answer(number: int, _job: Job) -> str:
        return f"large {number}"

    receipts = await answer.enqueue_many(list(range(8)))
    async with working(shop):
        told = [await receipt.handle.result(timeout="60s") for receipt in receipts]
    assert told[:5] == [f"large {number}" for number in range(5)]
    assert told[5:] == [f"small {number} of answer" for number in range(5, 8)]
    assert await _spent(shop, "k/ai/answer") == 5 * CENT + 3 * 1_000


async def _takes_text(_text: str) -> None: ...


async def _returns_text(_number: int) -> str:
    return ""


def _plain(_number: int) -> None: ...


@pytest.mark.parametrize(
    ("cheaper", "words"),
    [
        (_takes_text, "must take and return the same as the task"),
        (_returns_text, "must take and return the same as the task"),
        (_plain, "must be an async def"),
        (5, "must be an async def"),
    ],
)
def test_a_cheaper_handler_that_is_not_like_the_tasks_is_refused(cheaper: Any, words: str) -> None:
    app = Faena("shop")
    ai = app.upstream("ai", prices=[Price("call", "0.01 USD")])
    with pytest.raises(ConfigError) as caught:

        @app.queue("answers").task(upstreams=[ai], cheaper=cheaper)
        async def answer(_number: int) -> None: ...

    assert f"cheaper of task answer {words}" in str(caught.value)


@pytest.mark.parametrize("is_async", [True, False])
def test_a_cheaper_handler_of_a_task_that_has_none_is_refused(*, is_async: bool) -> None:
    app = Faena("shop")
    priced = app.upstream("ai", prices=[Price("call", "0.01 USD")])
    names = {True: [app.upstream("afip")], False: [priced]}

    async def answer(_number: int) -> None: ...

    def answer_in_thread(_number: int) -> None: ...

    with pytest.raises(ConfigError, match="unless the task is an async def that names an upstream"):
        app.queue("answers").task(upstreams=names[is_async], cheaper=answer)(
            answer if is_async else answer_in_thread
        )


# -- soft limits -----------------------------------------------------------------------------------


async def test_beyond_the_soft_share_jobs_go_behind_more_urgent_ones(
    shop: Faena, working: Working
) -> None:
    sms = shop.upstream(
        "sms",
        prices=[Price("call", "0.01 USD")],
        budgets=[Budget("1 USD", per="month", soft=0.01)],
    )
    queue = shop.queue("messages", concurrency=1)
    order: list[tuple[str, int]] = []

    @queue.task(upstreams=[sms], frugal_priority="bulk")
    async def advertise(name: str, job: Job) -> None:
        order.append((name, job.attempt))

    @queue.task(upstreams=[sms])
    async def remind(name: str, job: Job) -> None:
        order.append((name, job.attempt))

    async with sms.call():
        pass  # the soft share is used up
    first = await advertise.enqueue("an advertisement", priority="high")
    second = await remind.enqueue("a reminder", priority="low")
    async with working(shop):
        for receipt in (first, second):
            await receipt.handle.result(timeout="60s")
    assert order == [("a reminder", 1), ("an advertisement", 1)]
    view = await first.handle.view()
    assert view is not None
    assert view.priority == 50
    assert "a budget is short" in view.log[0]


async def test_a_job_of_a_soft_task_that_is_not_urgent_stays_where_it_is(
    shop: Faena, working: Working
) -> None:
    sms = shop.upstream(
        "sms",
        prices=[Price("call", "0.01 USD")],
        budgets=[Budget("1 USD", per="month", soft=0.01)],
    )
    queue = shop.queue("messages")

    @queue.task(upstreams=[sms], frugal_priority="low")
    async def advertise(_name: str) -> None: ...

    async with sms.call():
        pass
    receipt = await advertise.enqueue("an advertisement", priority="bulk")
    async with working(shop):
        await receipt.handle.result(timeout="60s")
    view = await receipt.handle.view()
    assert view is not None
    assert (view.priority, view.log) == (50, ())


def test_a_frugal_priority_needs_prices(shop: Faena) -> None:
    afip = shop.upstream("afip")
    with pytest.raises(ConfigError, match=r"frugal_priority of task send must be left out"):

        @shop.queue("messages").task(upstreams=[afip], frugal_priority="low")
        async def send(_number: int) -> None: ...


# -- rounding --------------------------------------------------------------------------------------


def test_a_call_is_rounded_up_once() -> None:
    prices = PriceList([Price("a", "0.31 USD", per=1_000_000), Price("b", "0.31 USD", per=10**6)])
    assert prices.cost({"a": 1}) == prices.cost({"a": 1, "b": 1}) == prices.cost({"a": 3}) == 1
    assert prices.cost({"a": 2, "b": 2}) == 2


async def test_what_is_said_bit_by_bit_costs_no_more_than_at_once(
    shop: Faena, working: Working
) -> None:
    prices = [Price("token", "0.15 USD", per=1_000_000)]
    ai = shop.upstream(
        "ai", prices=prices, estimate={"token": 1000}, budgets=[Budget("0.0003 USD")]
    )

    @shop.queue("answers").task(upstreams=[ai])
    async def answer(_question: str) -> None:
        for _ in range(1000):
            ai.spend(token=1)

    receipt = await answer.enqueue("why?")
    async with working(shop):
        await receipt.handle.result(timeout="60s")
    async with ai.call() as call:
        for _ in range(1000):
            call.spend(token=1)
    assert await _spent(shop, "s/ai") == 300


def test_calls_that_reserve_nothing_are_refused_where_a_hard_budget_must_stop_them(
    shop: Faena,
) -> None:
    free = {"prices": [Price("token", "1 USD")], "estimate": {"token": 0}}
    with pytest.raises(ConfigError, match="estimate must cost something"):
        shop.upstream("ai", **free, budgets=[Budget("1 USD")])
    shop.upstream("told", **free, budgets=[Budget("1 USD", hard=False)])
    paid = shop.upstream("paid", prices=[Price("call", "1 USD")], budgets=[Budget("1 USD")])
    with pytest.raises(ConfigError, match="estimate must cost something"):
        paid.call(estimate={"call": 0})
