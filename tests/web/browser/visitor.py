"""Somebody in front of a real browser, who hears what it complains about."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Response
from starlette.applications import Starlette
from starlette.routing import Mount

from faena.web.application import Dashboard
from faena.web.development import link_for
from tests._support.served import served

ROOT: Final = "/admin/queues"
WIDTHS: Final = (360, 768, 1440)
_HEIGHT: Final = 900
_SERIOUS: Final = {"serious", "critical"}


@dataclass
class Visitor:
    """One browser window, signed in."""

    context: BrowserContext
    page: Page
    address: str
    """Where the dashboard is."""
    complaints: list[str] = field(default_factory=list)
    """What the browser said against the pages."""

    async def open(self, path: str) -> Response | None:
        """Go to a page of the dashboard."""
        return await self.page.goto(f"{self.address}{path}", wait_until="load")

    async def links(self) -> list[str]:
        """Where the page leads within the dashboard, as paths."""
        found = await self.page.eval_on_selector_all(
            "a[href]", "links => links.map(link => link.href.baseVal ?? link.href)"
        )
        here = urlsplit(self.address)
        paths: list[str] = []
        for link in found:
            parts = urlsplit(urljoin(self.page.url, link))  # those of pictures are as written
            if parts.netloc == here.netloc and parts.path.startswith(here.path):
                query = f"?{parts.query}" if parts.query else ""
                paths.append(parts.path.removeprefix(here.path) + query)
        return paths

    async def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return await self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )

    async def barriers(self) -> list[str]:
        """What keeps somebody out: violations that axe calls serious or critical."""
        found = await Axe().run(self.page)
        return [
            f"{one['id']}: {one['nodes'][0]['html'][:160]}"
            for one in found.response["violations"]
            if one["impact"] in _SERIOUS
        ]

    async def resize(self, width: int) -> None:
        """Another window, or a phone."""
        await self.page.set_viewport_size({"width": width, "height": _HEIGHT})

    async def keep(self, directory: Path | None, name: str) -> None:
        """A screenshot, where somebody wants to look at them."""
        if directory is not None:
            await self.page.screenshot(path=directory / f"{name}.png", full_page=True)

    def hear(self) -> None:
        """Listen to what the browser complains about."""

        def on_console(message: ConsoleMessage) -> None:
            if message.type in {"error", "warning"}:
                self.complaints.append(f"{self.page.url}: {message.text}")

        def on_failure(request: Request) -> None:
            # A stream that ends because its page is left is no failure.
            if "/live/" not in request.url:
                self.complaints.append(f"{request.url}: {request.failure}")

        self.page.on("console", on_console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfailed", on_failure)
        self.page.on("dialog", lambda dialog: self.complaints.append(f"script: {dialog.message}"))


@asynccontextmanager
async def visiting(browser: Browser, web: Dashboard, **wanted: Any) -> AsyncGenerator[Visitor]:
    """Somebody who has come in by a link, at a dashboard that is served for them."""
    async with served(Starlette(routes=[Mount(ROOT, web)])) as origin:
        address = f"http://{origin}{ROOT}"
        context = await browser.new_context(viewport={"width": 1440, "height": _HEIGHT}, **wanted)
        try:
            visitor = Visitor(context, await context.new_page(), address)
            visitor.hear()
            await visitor.page.goto(await link_for(await web.site(), address))
            await visitor.page.click("main button, .door button")
            await visitor.page.wait_for_url(f"{address}/")
            yield visitor
        finally:
            await context.close()
            await web.close()


def kind_of(path: str) -> str:
    """The kind of page behind a path: two jobs are of one kind, and two filters of a page."""
    where = urlsplit(path).path
    if "/jobs/" in where:
        return "/queues/…/jobs/…"
    return re.sub(r"^/(\w+)/[^/]+", r"/\1/…", where)


def chosen(environ: Mapping[str, str]) -> Path | None:
    """Where screenshots are kept: FAENA_SHOTS, nowhere by default."""
    return Path(environ["FAENA_SHOTS"]) if "FAENA_SHOTS" in environ else None
