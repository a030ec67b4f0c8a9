"""In a real browser a search goes on by itself, and jobs are chosen with the keyboard."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Route, expect

from faena import Faena, Retry
from faena.web.access.access import Access
from faena.web.application import dashboard
from faena.web.page import search
from tests._support.chromium import chromium
from tests._support.valkey import Server
from tests._support.working import obliterate
from tests.web.browser.visitor import WIDTHS, Visitor, chosen, visiting

_PATIENCE_MS = 60_000


@asynccontextmanager
async def searching(
    server: Server, language: str = "en-GB", theme: str = "light"
) -> AsyncGenerator[Visitor]:
    """Somebody in front of an app of two queues, with jobs of two tenants in several states."""
    app = Faena("shop", server.url, namespace="searching")
    mail, debts = app.queue("mail", retry=Retry.fixed("1s", attempts=1)), app.queue("debts")

    @mail.task
    async def send(number: int) -> None:
        if number < 0:
            raise ConnectionError("<b>the printer</b> is on fire, and so is everything beside it")

    @debts.task
    async def chase(number: int) -> None: ...

    async with chromium() as browser, app:
        await send.enqueue_many([-1, -2, 3], tenant="acme")
        await app.run_worker(until_empty=True)
        await chase.enqueue_many(range(4), tenant="acme", delay="1h")
        await send.enqueue_many(range(5), tenant="bolt")
        web = dashboard(app, access=Access(link=True), environment="test")
        async with visiting(browser, web, locale=language, color_scheme=theme) as visitor:
            yield visitor
        await obliterate(app)


async def test_a_search_goes_on_by_itself_until_its_end(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_BUDGET_S", 0.0)
    async with searching(server) as visitor:
        await visitor.open("/search?q=tenant:acme")
        rows = visitor.page.locator("#found tbody tr")
        await expect(rows).to_have_count(7, timeout=_PATIENCE_MS)
        await expect(visitor.page.locator("[data-more]")).to_have_count(0, timeout=_PATIENCE_MS)
        assert not visitor.complaints


async def test_a_search_that_is_stopped_stays_where_it_is(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_BUDGET_S", 0.0)
    async with searching(server) as visitor:
        is_let_go = asyncio.Event()

        async def hold(route: Route) -> None:
            await is_let_go.wait()
            await route.continue_()

        await visitor.page.route("**/search?*cursor=*", hold)
        await visitor.open("/search?q=state:completed")
        await visitor.page.locator("[data-stop]").click()
        await expect(visitor.page.locator("[data-stop]")).to_be_hidden()
        await expect(visitor.page.locator("[data-more] a")).to_be_visible()
        is_let_go.set()
        await expect(visitor.page.locator("#found tbody tr")).to_have_count(0)
        await visitor.page.locator("[data-more] a").click()
        await expect(visitor.page.locator("#found tbody tr")).to_have_count(1, timeout=_PATIENCE_MS)


async def test_jobs_are_chosen_with_the_keyboard_and_cancelled(server: Server) -> None:
    async with searching(server) as visitor:
        page = visitor.page
        await visitor.open("/search?q=queue:debts")
        await page.keyboard.press("j")
        await page.keyboard.press("x")
        await page.keyboard.press("j")
        await page.keyboard.press("x")
        await expect(page.locator("[data-chosen]")).to_have_text("2 jobs chosen")
        await page.get_by_role("button", name="Cancel…").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Cancel 2 jobs?")
        await page.get_by_role("button", name="Cancel: 2 jobs").click()
        await expect(page.locator("[data-figure=done]")).to_have_text("2", timeout=_PATIENCE_MS)
        await expect(page.locator("[data-figure=state]")).to_have_text("done", timeout=_PATIENCE_MS)
        assert not visitor.complaints


@pytest.mark.parametrize(
    ("language", "theme"), [("en-GB", "light"), ("es-AR", "dark"), ("pt-BR", "light")]
)
async def test_pages_with_jobs_keep_nobody_out(server: Server, language: str, theme: str) -> None:
    async with searching(server, language, theme) as visitor:
        for name, path in {
            "found": "/search?q=tenant:acme",
            "empty": "/search?q=nothing",
            "start": "/search",
            "jobs": "/queues/mail/jobs?state=dead",
            "confirm": "/bulk/new?action=retry&all=1&q=tenant:acme",
        }.items():
            await visitor.open(path)
            await _look(visitor, f"{name}-{language[:2]}")
        await visitor.page.goto(f"{visitor.address}/bulk/new?action=retry&all=1&q=tenant:acme")
        await visitor.page.locator(".panel-foot button").click()
        done = visitor.page.locator("[data-figure=done]")
        await expect(done).to_have_text("2", timeout=_PATIENCE_MS)
        await _look(visitor, f"bulk-{language[:2]}")
        await visitor.open("/bulk")
        await _look(visitor, f"bulks-{language[:2]}")
        assert not visitor.complaints


async def _look(visitor: Visitor, name: str) -> None:
    assert await visitor.barriers() == []
    for width in WIDTHS:
        await visitor.resize(width)
        assert await visitor.overflow() <= 0, f"{name} at {width}"
        await visitor.keep(chosen(os.environ), f"s-{name}-{width}")
