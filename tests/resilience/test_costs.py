"""What programs see of costs: budgets, reports, and the report of every day."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, date, datetime
from typing import Any

import pytest

from faena import Budget, BudgetView, CostReport, Faena, Money, Price, UpstreamUnavailable
from faena.engine.calls import resilience
from faena.engine.calls.resilience import Settled
from faena.errors import ConfigError
from faena.resilience.call_group import Permits
from faena.resilience.upstream import Upstream
from faena.testing import Harness, harness
from tests._support.valkey import Server

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


@pytest.fixture
async def h(app: Faena, valkey: Server) -> AsyncIterator[Harness]:
    async with harness(app, url=valkey.url, start=NOON) as tested:
        yield tested


def _ai(app: Faena, *budgets: Budget) -> Upstream:
    return app.upstream("ai", prices=[Price("call", "0.25 USD")], budgets=budgets)


async def _call(app: Faena, upstream: Upstream, times: int = 1, tenant: str | None = None) -> None:
    for _ in range(times):
        async with upstream.call(tenant=tenant, estimate={"call": 1}):
            pass
    await (await app.runtime()).gate.flush()


def _text(view: BudgetView) -> tuple[str, ...]:
    return str(view.amount), str(view.spent), str(view.reserved), str(view.left)


# -- budgets ---------------------------------------------------------------------------------------


async def test_a_budget_tells_what_is_spent_reserved_and_left(app: Faena, h: Harness) -> None:
    ai = _ai(app, Budget("1 USD", soft=0.5), Budget("30 USD", per="month"))
    app.total_budgets([Budget("2 USD", hard=False)])
    await _call(app, ai, 2)
    async with ai.call(estimate={"call": 1}):
        day, month, total = await app.budget_views()
    await (await app.runtime()).gate.flush()
    assert (day.upstream, day.per, day.period) == ("ai", "day", "2026-11-16")
    assert _text(day) == ("1.00 USD", "0.50 USD", "0.25 USD", "0.25 USD")
    assert (day.percent, day.is_hard, day.soft, day.is_used_up) == (50.0, True, 0.5, False)
    assert day.ends_at == (h.clock() // 10**6 + 12 * 3600) * 10**6
    assert (month.period, month.ends_at) == ("2026-11", day.ends_at + 14 * 86400 * 10**6)
    assert (total.upstream, total.is_hard, total.spent) == (None, False, Money(500_000, "USD"))
    assert day.to_dict()["left"]["text"] == "0.25 USD"


async def test_a_budget_is_used_up_when_no_usual_call_fits(app: Faena, h: Harness) -> None:
    assert h.app is app
    ai = _ai(app, Budget("0.6 USD"))
    await _call(app, ai)
    (view,) = await app.budget_views()
    assert (view.is_used_up, str(view.left)) == (False, "0.35 USD")
    await _call(app, ai)
    (view,) = await app.budget_views()
    assert (view.is_used_up, str(view.left)) == (True, "0.10 USD")


async def test_an_event_tells_that_calls_stop_below_the_whole_budget(
    app: Faena, h: Harness
) -> None:
    ai = _ai(app, Budget("0.6 USD", each_tenant=True))
    app.queue("answers")
    await h.spend(ai, "0.4 USD", tenant="acme")
    async with aclosing(app.events(since="start", kinds="budget_used_up")) as events:
        told = await anext(events)
    assert (told.value, told.tenant) == ("ai", "acme")
    assert told.reason == (
        "0.60 USD for 2026-11-16 is used up by tenant acme: 0.40 USD is spent, and a call of ai "
        "may cost 0.25 USD"
    )


@pytest.mark.parametrize(("spent", "is_frugal"), [("40 USD", False), ("40.000001 USD", True)])
async def test_the_soft_share_counts_the_coming_call(
    app: Faena, h: Harness, spent: str, *, is_frugal: bool
) -> None:
    prices = [Price("call", "10 USD")]
    ai = app.upstream("ai", prices=prices, budgets=[Budget("100 USD", soft=0.5)])
    await h.spend(ai, spent)
    async with ai.call() as call:
        assert call.is_frugal == is_frugal
    await (await app.runtime()).gate.flush()


async def test_a_cheaper_handler_uses_up_the_rest_if_the_expensive_call_reserves_for_itself(
    app: Faena, h: Harness
) -> None:
    prices = [Price("large", "1 USD"), Price("small", "0.01 USD")]
    budgets = [Budget("100 USD", soft=0.5)]
    chat = app.upstream("chat", prices=prices, estimate={"small": 1}, budgets=budgets)
    queue = app.queue("answers")

    async def short_reply(_question: int) -> str:
        chat.spend({"small": 1})
        return "short"

    @queue.task(upstreams=[chat], cheaper=short_reply)
    async def long_reply(_question: int) -> str:
        async with chat.call(estimate={"large": 10}) as call:
            call.spend({"large": 8})
        return "long"

    for spent, reply, cost in (("1 USD", "long", "9.00"), ("90 USD", "short", "99.01")):
        await h.spend(chat, spent)
        receipt = await long_reply.enqueue(1)
        await h.drain()
        assert await receipt.handle.result() == reply
        assert str((await chat.view()).budgets[0].spent) == f"{cost} USD"


async def test_a_call_with_an_estimate_of_its_own_takes_no_permit_that_reserved_less(
    shop: Faena,
) -> None:
    prices = [Price("large", "1 USD"), Price("small", "0.01 USD")]
    chat = shop.upstream("chat", prices=prices, estimate={"small": 1}, budgets=[Budget("5 USD")])
    group = (await shop.runtime()).gate.group([chat], "")
    group.permits = Permits(group, 1, math.inf)  # granted in advance, for a small one
    with pytest.raises(UpstreamUnavailable, match="budget"):
        async with chat.call(estimate={"large": 6}):
            raise AssertionError("it was called without money")
    assert group.permits.left == 1
    async with chat.call():
        assert group.permits.left == 0


async def test_each_tenant_has_its_own(app: Faena, h: Harness) -> None:
    assert h.app is app
    ai = _ai(app, Budget("1 USD", each_tenant=True))
    await _call(app, ai, 1, "acme")
    await _call(app, ai, 2, "bits")
    (most,), (asked,) = await app.budget_views(), await app.budget_views(tenant="acme")
    assert (most.is_each_tenants, most.tenant, str(most.spent)) == (True, "bits", "0.50 USD")
    assert (asked.tenant, str(asked.spent)) == ("acme", "0.25 USD")


async def test_budgets_are_shown_before_the_first_call(app: Faena, h: Harness) -> None:
    assert h.app is app
    _ai(app, Budget("1 USD"))
    app.total_budgets([Budget("2 ARS", per="month")])
    assert [view.upstream for view in await app.budget_views()] == ["ai", None]


# -- reports ---------------------------------------------------------------------------------------


async def test_a_report_tells_who_has_spent_what(app: Faena, h: Harness) -> None:
    ai = _ai(app, Budget("10 USD", per="month"))
    pix = app.upstream("pix", prices=[Price("call", "1.5 BRL")])
    await _call(app, ai, 3, "bits")
    job = Settled("lot", 0, "acme", "answer", ["ai", 250_000])
    await resilience.admit((await app.runtime()).engine, "worker", "1", [], [], [job])
    h.clock.advance("24h")
    await _call(app, pix)
    report = await app.cost_report(month="2026-11", top=1)
    assert (report.per, report.period, report.at) == ("month", "2026-11", h.clock())
    assert [*map(str, report.spent)] == ["1.50 BRL", "1.00 USD"]
    second, first = report.services
    assert (first.upstream, str(first.spent), first.tenants) == ("ai", "1.00 USD", 2)
    assert [(one.task, str(one.spent)) for one in first.tasks] == [("answer", "0.25 USD")]
    assert [(one.tenant, str(one.spent)) for one in first.top_tenants] == [("bits", "0.75 USD")]
    assert (second.upstream, second.tasks, second.top_tenants) == ("pix", (), ())
    assert [(one.day, *map(str, one.spent)) for one in report.days] == [
        ("2026-11-16", "1.00 USD"),
        ("2026-11-17", "1.50 BRL"),
    ]
    (share,) = report.budgets
    assert (share.upstream, share.percent) == ("ai", 10.0)
    assert report.to_dict()["services"][1]["spent"]["micro"] == 10**6


async def test_a_forecast_is_what_the_month_costs_if_it_goes_on_like_this(
    app: Faena, h: Harness
) -> None:
    ai = _ai(app)
    await _call(app, ai, 4)
    report = await app.cost_report()
    assert report.forecast == (Money(10**6 * 30 * 24 // (15 * 24 + 12), "USD"),)
    assert report.services[0].forecast == report.forecast[0]
    h.clock.advance("15d")
    await _call(app, ai, 4)
    assert (await app.cost_report()).forecast is None, "the first day of December"
    assert (await app.cost_report(month="2026-11")).forecast is None, "which is over"
    h.clock.advance("12h")
    assert (await app.cost_report()).forecast == (Money(31 * 10**6, "USD"),)


async def test_a_day_is_reported_with_its_month(app: Faena, h: Harness) -> None:
    ai = _ai(app, Budget("1 USD"), Budget("4 USD", per="month"))
    await _call(app, ai)
    h.clock.advance("24h")
    await _call(app, ai, 2)
    report = await app.cost_report(day=date(2026, 11, 16))
    assert (report.per, report.period) == ("day", "2026-11-16")
    assert [*map(str, report.spent), *map(str, report.month_spent)] == ["0.25 USD", "0.75 USD"]
    assert [(one.per, one.percent) for one in report.budgets] == [("day", 25.0), ("month", 18.75)]
    assert report == await app.cost_report(day="2026-11-16")
    assert (await app.cost_report(day="2026-11-15")).spent == ()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"month": "2026-13"}, "month must be one such as '2026-11', got '2026-13'"),
        ({"month": 202611}, "month must be one such as '2026-11', got 202611"),
        ({"day": "16.11.2026"}, "day must be a date such as '2026-11-16', got '16.11.2026'"),
        ({"day": NOON}, "day must be a date such as '2026-11-16', got datetime"),
        ({"day": "2026-11-16", "month": "2026-11"}, "day must be left out when a month is given"),
        ({"top": -1}, "top must be"),
        ({"top": 101}, "top must be"),
    ],
)
async def test_a_report_of_no_period_is_refused(
    app: Faena, h: Harness, asked: dict[str, Any], words: str
) -> None:
    assert h.app is app
    with pytest.raises(ConfigError) as caught:
        await app.cost_report(**asked)
    assert words in str(caught.value)


# -- every day -------------------------------------------------------------------------------------


async def test_the_report_of_the_day_before_comes_every_day(app: Faena, h: Harness) -> None:
    ai = _ai(app)
    seen: list[CostReport] = []

    @app.daily_cost_report(at="08:30", timezone="America/Argentina/Buenos_Aires")
    async def mail_costs(report: CostReport) -> None:
        seen.append(report)

    assert (mail_costs.name, mail_costs.queue) == ("mail_costs", "scheduler")
    await _call(app, ai, 2)
    await h.drain(through="2d")
    assert [one.period for one in seen] == ["2026-11-16", "2026-11-17"]
    assert [[*map(str, one.spent)] for one in seen] == [["0.50 USD"], []]
    view = await app.schedules.get("mail_costs")
    assert view is not None
    assert view.next_at == int(datetime(2026, 11, 19, 11, 30, tzinfo=UTC).timestamp()) * 10**6


async def test_a_report_that_comes_late_is_of_its_own_day(app: Faena, h: Harness) -> None:
    queue = app.queue("office")
    seen: list[str] = []

    @app.daily_cost_report(queue=queue)
    async def mail_costs(report: CostReport) -> None:
        seen.append(report.period)
        if len(seen) == 1:
            raise ConnectionResetError("no mail")

    await queue.pause()
    await h.drain(through="1d")
    h.clock.advance("3d")
    await queue.resume()
    await h.drain(schedules=False, through="1h")
    assert seen == ["2026-11-16", "2026-11-16"]


async def _takes_two(_report: CostReport, _more: int) -> None: ...


async def _takes_none() -> None: ...


def _plain(_report: CostReport) -> None: ...


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"at": "8:00"}, "at must be a time of day such as '08:00', got '8:00'"),
        ({"at": "24:00"}, "at must be a time of day such as '08:00', got '24:00'"),
        ({"at": 8}, "at must be a time of day such as '08:00', got 8"),
        ({"at": _takes_none}, "must be given its options first"),
        ({"timezone": "Buenos Aires"}, "timezone must be a time zone such as Europe/Madrid"),
        ({"queue": "nowhere"}, "no queue 'nowhere' in app shop"),
    ],
)
def test_a_daily_report_at_no_time_is_refused(options: dict[str, Any], words: str) -> None:
    app = Faena("shop")

    async def report(_report: CostReport) -> None: ...

    with pytest.raises(ConfigError) as caught:
        app.daily_cost_report(**options)(report)
    assert words in str(caught.value)
    assert not app.queues


@pytest.mark.parametrize("function", [_takes_two, _takes_none, _plain, 5])
def test_a_daily_report_for_no_such_function_is_refused(function: Any) -> None:
    with pytest.raises(ConfigError, match="must be an async function that takes a CostReport"):
        Faena("shop").daily_cost_report()(function)


async def test_what_tenants_have_cost_is_told_by_name(app: Faena, h: Harness) -> None:
    ai = app.upstream("ai", prices=[Price("call", "0.25 USD")])
    sms = app.upstream("sms", prices=[Price("call", "1 ARS")])
    for upstream, tenant in (*((ai, "acme"),) * 3, (ai, "bolt"), (sms, "acme")):
        async with upstream.call(tenant=tenant, estimate={"call": 1}):
            pass
    await (await app.runtime()).gate.flush()
    found = await app.tenant_costs("acme", "nobody", "bolt")
    told = {name: [str(one) for one in sums] for name, sums in found.items()}
    assert told == {"acme": ["1.00 ARS", "0.75 USD"], "nobody": [], "bolt": ["0.25 USD"]}
