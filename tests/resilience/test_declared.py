"""What a program declares of upstreams that would not do what its author thinks."""

from __future__ import annotations

from datetime import date

import pytest

from faena import Budget, Faena, Price, UpstreamUnavailable
from faena.errors import ConfigError
from faena.resilience.money import PriceList
from tests.resilience.test_money import CENT, _spent


def test_an_upstream_of_another_app_is_refused(app: Faena) -> None:
    afip = Faena("billing").upstream("afip")
    app.upstream("afip")
    words = rf"must be upstreams of app {app.name}, got afip of another app, billing"
    with pytest.raises(ConfigError, match=f"upstreams of task request {words}") as caught:

        @app.queue("invoices").task(upstreams=[afip])
        async def request() -> None: ...

    assert caught.value.field == "upstreams"
    with pytest.raises(ConfigError, match=f"upstreams of feature invoicing {words}"):
        app.feature("invoicing", upstreams=[afip])


# -- prices of other days --------------------------------------------------------------------------

OVER = [Price("call", "0.02 USD", until="2020-01-01")]


async def test_a_price_list_that_has_run_out_stops_nothing(
    shop: Faena, caplog: pytest.LogCaptureFixture
) -> None:
    ai = shop.upstream("ai", prices=OVER, budgets=[Budget("0.05 USD")])
    assert "upstream ai: call has no price since 2020-01-01" in caplog.text
    caplog.clear()
    for _ in range(2):
        async with ai.call():
            pass
    with pytest.raises(UpstreamUnavailable, match="budget"):
        await ai.run(_nothing)
    assert await _spent(shop, "s/ai") == 4 * CENT
    assert caplog.text.count("call has no price on") == 1


async def _nothing() -> None:
    """Do nothing."""


def test_of_a_missing_price_the_log_is_told_once_a_day(caplog: pytest.LogCaptureFixture) -> None:
    prices = PriceList([*OVER, Price("call", "0.03 USD", since="2030-01-01")])
    for day, micro in ((1, 20_000), (1, 20_000), (2, 20_000)):
        assert prices.cost({"call": 1}, date(2026, 11, day), upstream="ai") == micro
    assert [one.getMessage() for one in caplog.records] == [
        f"upstream ai: call has no price on 2026-11-0{day}, so 0.02 USD for 1 is used: "
        "declare its price"
        for day in (1, 2)
    ]
    assert prices.cost({"call": 1}, date(2030, 1, 1), upstream="ai") == 30_000
    assert len(caplog.records) == 2


def test_before_the_first_price_that_one_counts() -> None:
    prices = PriceList([Price("call", "0.03 USD", since="2030-01-01")])
    assert prices.cost({"call": 1}, date(2026, 11, 1)) == 30_000


def test_gaps_between_prices_are_told_when_declared(
    app: Faena, caplog: pytest.LogCaptureFixture
) -> None:
    app.upstream("ai", prices=[*OVER, Price("call", "0.03 USD", since="2020-02-01")])
    assert "upstream ai: call has no price from 2020-01-01 to 2020-02-01" in caplog.text


def test_whether_a_budget_is_refused_does_not_depend_on_the_day(
    app: Faena, caplog: pytest.LogCaptureFixture
) -> None:
    day = "2020-01-01"
    prices = [Price("call", "1 USD", until=day), Price("call", "9 USD", since=day)]
    app.upstream("ai", prices=prices, budgets=[Budget("5 USD")])
    assert "as estimated, for which the budget of 5 USD is too small" in caplog.text
    with pytest.raises(ConfigError, match="budgets must pay for one call as estimated"):
        app.upstream("sms", prices=prices, budgets=[Budget("0.9 USD")])


def test_a_list_that_begins_later_is_warned_of(
    app: Faena, caplog: pytest.LogCaptureFixture
) -> None:
    app.upstream("ai", prices=[Price("call", "1 USD", since="2999-01-01")])
    assert "upstream ai: call has no price before 2999-01-01, so that one counts" in caplog.text
