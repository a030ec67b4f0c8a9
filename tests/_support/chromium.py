"""Debian's real Chromium, driven by Playwright.

    async with chromium() as browser:
        page = await browser.new_page()

Where it cannot be installed, tests that need it are skipped, unless FAENA_REQUIRED names it.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from playwright.async_api import Browser, async_playwright

from tests._support import debian

_FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


@asynccontextmanager
async def chromium() -> AsyncGenerator[Browser]:
    """A browser of its own, closed with the block."""
    debian.needed("chromium", "chromium")
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=[*_FLAGS], headless=True
        )
        try:
            yield browser
        finally:
            await browser.close()
