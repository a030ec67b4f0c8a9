"""Costs: what is spent and by whom, in a month that the address names."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from faena import Budget, Faena, Price
from faena.web.application import Dashboard
from tests._support.valkey import Server
from tests.web.conftest import Browser


@pytest.fixture
async def spent(app: Faena) -> None:
    openai = app.upstream(
        "openai",
        prices=[Price("call", "0.50 USD")],
        budgets=[Budget("2 USD", thresholds=(50, 80)), Budget("100 USD", per="month")],
    )
    app.upstream("maps", prices=[Price("call", "1 USD")])
    mail = app.queue("mail")

    @mail.task(upstreams=[openai])
    async def transcribe() -> None:
        async with openai.call():
            pass

    for tenant in ("acme", "acme", "globex", "<b>bold</b>"):
        await transcribe.enqueue(tenant=tenant)
    await app.run_worker(until_empty=True)
    async with app.upstreams["maps"].call(tenant="globex"):
        pass


async def test_a_month_is_told_by_service_tenant_and_task(spent: None, browser: Browser) -> None:
    await browser.sign_in("a-viewer")
    page = await browser.get("/costs")
    assert page.status_code == 200
    assert "openai: 100 % of 2.00 USD for today is spent: used up: calls stop." in page.text
    assert '<b class="big" data-figure="fact.0">3.00 USD</b>' in page.text
    assert "transcribe" in page.text
    assert page.text.index("globex") < page.text.index("acme")
    assert "&lt;b&gt;bold" in page.text
    assert "<b>bold" not in page.text
    assert 'aria-label="Costs a day in USD: at most 3"' in page.text
    now = (await browser.get("/now/costs")).json()
    assert now["fact.0"] == "3.00 USD"


async def test_other_months_and_days_are_addresses(spent: None, browser: Browser) -> None:
    await browser.sign_in("a-viewer")
    today = datetime.now(UTC).date()
    page = await browser.get(f"/costs?day={today}")
    assert "3.00 USD" in page.text
    assert 'data-live="costs"' not in page.text
    page = await browser.get("/costs?month=2025-01")
    assert "January 2025" in page.text
    assert "3.00 USD" not in page.text
    for bad in ("month=2025-13", "month=now", "day=2025-02-30", "day=x", "month=%00"):
        assert (await browser.get(f"/costs?{bad}")).status_code == 422, bad


async def test_total_budgets_are_forgotten_when_no_program_declares_them(
    app: Faena, web: Dashboard, browser: Browser, valkey: Server, namespace: str
) -> None:
    other = Faena("other", valkey.url, namespace=namespace)
    other.upstream("maps", prices=[Price("call", "1 USD")])
    other.total_budgets([Budget("300 USD", per="month")])
    await other.budget_views()
    await other.close()
    await browser.sign_in("a-admin")
    page = await browser.get("/costs")
    assert "all in USD" in page.text
    assert "Forget 1 budget" in page.text
    assert (await browser.post("/do/budgets.forget-totals", back="/costs")).status_code == 303
    assert "all in USD" not in (await browser.get("/costs")).text
    (record,) = (await (await web.site()).trail.page()).records
    assert record.before == ["300.00 USD"]


async def test_own_total_budgets_are_not_forgotten(app: Faena, browser: Browser) -> None:
    app.total_budgets([Budget("300 USD", per="month")])
    await browser.sign_in("a-admin")
    assert "Forget 1 budget" not in (await browser.get("/costs")).text
    assert (await browser.post("/do/budgets.forget-totals")).status_code == 422


async def test_an_app_without_costs_says_so(app: Faena, browser: Browser) -> None:
    await browser.sign_in("a-viewer")
    assert "Nothing was spent" in (await browser.get("/costs")).text
