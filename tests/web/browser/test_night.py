"""Ten things that an operator does at night, each in at most three clicks from the overview."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from playwright.async_api import Browser, expect

from faena import Faena
from faena.web.access.access import Access
from faena.web.application import dashboard
from tests._support.chromium import chromium
from tests._support.eventually import PATIENCE_S, eventually
from tests._support.valkey import Server
from tests.web.browser.visitor import Visitor, visiting
from tests.web.browser.world import SCRIPT, World, world_at

_MOST_CLICKS = 3


class Operator:
    """Somebody at night, whose clicks are counted; keys are not."""

    def __init__(self, visitor: Visitor, world: World) -> None:
        self.page, self.world, self.app = visitor.page, world, world.app
        self.clicks = 0

    async def click(self, what: str) -> None:
        self.clicks += 1
        await self.page.locator(what).first.click()
        await self.page.wait_for_load_state()

    async def find(self, words: str) -> None:
        """With the key `/`."""
        await self.page.keyboard.press("/")
        await self.page.keyboard.type(words)
        async with self.page.expect_navigation():
            await self.page.keyboard.press("Enter")

    async def sees(self, text: str) -> None:
        await expect(self.page.locator("main")).to_contain_text(text, timeout=PATIENCE_S * 1000)


async def why_a_customer_s_job_waits(one: Operator) -> None:
    await one.find("tenant:bolt queue:invoices")
    await one.click("main table a.name")
    await one.sees("Why it is here")
    await one.sees("held")


async def stop_one_provider(one: Operator) -> None:
    await one.click("nav a[href$='/upstreams']")
    await one.click("tr:has-text('openai') button:has-text('Panic…')")
    await one.page.keyboard.press("Tab")
    await one.page.locator(":popover-open input[name=reason]").fill("it answers nonsense")
    await one.click(":popover-open button:has-text('Stop all calls')")

    async def is_stopped() -> bool:
        return (await one.app.upstream_control.view("openai")).panic is not None

    await eventually(is_stopped)


async def redrive_what_died_with_a_canary(one: Operator) -> None:
    await one.click("nav a[href$='/dead']")
    await one.click("button:has-text('Redrive…')")
    await one.click(":popover-open button.btn-first")

    async def has_begun() -> bool:
        return bool(await one.app.dead_letters.redrives("mail"))

    await eventually(has_begun)


async def hold_a_queue(one: Operator) -> None:
    await one.click("main a.name:has-text('reports')")
    await one.click("button:has-text('Hold…')")
    await one.page.locator(":popover-open input[name=reason]").fill("the printer is on fire")
    await one.click(":popover-open button.btn-first")
    await eventually(lambda: _is_held(one.app, "reports", "the printer is on fire"))


async def release_a_queue(one: Operator) -> None:
    await one.click("main form[action*='resume'] button")
    await eventually(lambda: _is_held(one.app, "invoices", SCRIPT, is_so=False))


async def _is_held(app: Faena, queue: str, reason: str, *, is_so: bool = True) -> bool:
    holds = (await app.queues[queue].overview()).holds
    return any(hold.reason == reason for hold in holds) == is_so


async def run_a_dead_job_again(one: Operator) -> None:
    await one.find("state:dead tenant:crux")
    await one.click("main table a.name")
    name = one.page.url.partition("?")[0].rpartition("/")[2]
    job = await one.app.queues["mail"].handle(name, tenant="crux").view()
    assert job is not None
    died_at = job.finished_at
    await one.click("main button:has-text('Run again…')")
    await one.click(":popover-open form button.btn-first")

    async def has_run_again() -> bool:
        job = await one.app.queues["mail"].handle(name, tenant="crux").view()
        return job is not None and job.finished_at != died_at

    await eventually(has_run_again)


async def silence_an_alert(one: Operator) -> None:
    async def fires() -> bool:
        return bool((await one.app.alerts()).firing)

    await eventually(fires)
    await one.click("nav a[href$='/alerts']")
    await one.click("main tr button:has-text('Silence…')")
    await one.page.locator(":popover-open input[name=lasting]").fill("1h")
    await one.page.locator(":popover-open input[name=reason]").fill("known")
    await one.click(":popover-open button.btn-first")

    async def is_silent() -> bool:
        return bool((await one.app.alerts()).silences)

    await eventually(is_silent)


async def who_takes_everything(one: Operator) -> None:
    await one.click("nav a[href$='/tenants']")
    await one.click("main table a.name:has-text('acme')")
    await one.sees("Share of starts")


async def what_is_spent(one: Operator) -> None:
    await one.click("nav a[href$='/costs']")
    await one.sees("openai")
    await one.sees("5.00 USD")


async def who_has_changed_something(one: Operator) -> None:
    await one.app.queues["reports"].pause(reason="night", by="ana")
    await one.click("main a.name:has-text('reports')")
    await one.sees("By ana")


TASKS: tuple[Callable[[Operator], Awaitable[None]], ...] = (
    why_a_customer_s_job_waits,
    stop_one_provider,
    redrive_what_died_with_a_canary,
    hold_a_queue,
    release_a_queue,
    run_a_dead_job_again,
    silence_an_alert,
    who_takes_everything,
    what_is_spent,
    who_has_changed_something,
)


@pytest.fixture
async def browser_of_night() -> AsyncIterator[Browser]:
    async with chromium() as browser:
        yield browser


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.__name__)
async def test_three_clicks_are_enough(
    server: Server, browser_of_night: Browser, task: Callable[[Operator], Awaitable[None]]
) -> None:
    async with world_at(server.url, "night") as world:
        web = dashboard(world.app, access=Access(link=True), environment="test")
        async with visiting(browser_of_night, web, locale="en-GB") as visitor:
            operator = Operator(visitor, world)
            await task(operator)
            assert operator.clicks <= _MOST_CLICKS
            assert not visitor.complaints
