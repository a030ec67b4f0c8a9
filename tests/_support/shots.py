"""Takes the screenshots of README and docs, of a CampoTech whose tax office is out: `./dev shots`.

    ./dev shots                    # writes docs/shots/*.png
    ./dev shots DIRECTORY

A real day is played, with its work in forty minutes that pass in two. The pictures are taken by a
real browser while the tax office is out.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from apps.demo.people import People
from apps.demo.plan import OPENS, Act, plan_day
from apps.stage.stage import Stage, Wanted, open_stage
from playwright.async_api import Browser, Page

from apps.sandbox import Fault
from tests._support.chromium import chromium

_SPEED: Final = 20.0
_ORGANIZATIONS: Final = 24
_SEED: Final = 7
_PLAYED_MINUTES: Final = 40.0
"""Of the business day's work, this long is played: as much happens, sooner."""
_OUT_AT, _SHOT_AT = OPENS + 12.0, OPENS + 24.0
"""Minutes of the day: the tax office fails, and pictures are taken."""
_DAY_MINUTES: Final = 600.0
_DIRECTORY: Final = Path(__file__).parents[2] / "docs" / "shots"


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture."""

    name: str
    path: str
    width: int = 1440
    height: int = 900
    theme: str = "light"
    language: str = "en"
    follows: str = ""
    """A link to click first, as a selector: for addresses that nobody knows before."""


SHOTS: Final[Sequence[Shot]] = (
    Shot("overview", "/"),
    Shot("overview-dark", "/", theme="dark"),
    Shot("overview-phone", "/", width=390, height=844, language="es"),
    Shot("queue", "/queues/afip.invoice"),
    Shot("job", "/queues/afip.invoice/jobs?state=blocked", height=640, follows="main table a.name"),
    Shot("tenants", "/tenants"),
    Shot("upstream", "/upstreams/afip"),
    Shot("costs", "/costs"),
    Shot("search", "/search?q=state:blocked", theme="dark"),
)


async def main(directory: Path) -> None:
    """Play, and take all pictures."""
    with tempfile.TemporaryDirectory(prefix="faena-shots-") as name:
        wanted = Wanted(organizations=_ORGANIZATIONS, speed=_SPEED, seed=_SEED)
        async with (
            chromium() as browser,
            open_stage(wanted, Path(name), _say) as stage,
            _playing(stage),
        ):
            page = await _come_in(browser, stage)
            for shot in SHOTS:
                await _take(page, shot, directory)
                _say(f"{shot.name}.png")


@asynccontextmanager
async def _playing(stage: Stage) -> AsyncGenerator[None]:
    """The day up to when pictures are taken; it goes on behind them."""
    people, began = People(stage, _SEED), time.monotonic()
    people.begin(1)

    async def wait_for(minutes: float) -> None:
        await asyncio.sleep(began + (minutes - OPENS) * 60 / _SPEED - time.monotonic())

    async def play() -> None:
        async with asyncio.TaskGroup() as doing:
            for act in _compressed(plan_day(_ORGANIZATIONS, _SEED)):
                await wait_for(act.at)
                doing.create_task(people.do(act))

    playing = asyncio.create_task(play())
    try:
        await wait_for(_OUT_AT)
        stage.sandbox.afip.faults.add(Fault(kind="status", status=503))
        _say("the tax office is out")
        await wait_for(_SHOT_AT)
        yield
    finally:
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)


def _compressed(acts: Sequence[Act]) -> list[Act]:
    scale = _PLAYED_MINUTES / _DAY_MINUTES
    return [
        replace(act, at=OPENS + (act.at - OPENS) * scale) for act in acts if act.kind != "trouble"
    ]


async def _come_in(browser: Browser, stage: Stage) -> Page:
    context = await browser.new_context(timezone_id="America/Argentina/Buenos_Aires")
    page = await context.new_page()
    await page.goto(await stage.link())
    await page.click("main button, .door button")
    await page.wait_for_url("**/admin/queues/")
    return page


async def _take(page: Page, shot: Shot, directory: Path) -> None:
    root = page.url.partition("/admin/queues")[0] + "/admin/queues"
    joint = "&" if "?" in shot.path else "?"
    await page.emulate_media(color_scheme="dark" if shot.theme == "dark" else "light")
    await page.set_viewport_size({"width": shot.width, "height": shot.height})
    await page.goto(f"{root}{shot.path}{joint}lang={shot.language}")
    if shot.follows:
        await page.locator(shot.follows).first.click()
        await page.wait_for_load_state()
    await page.screenshot(path=directory / f"{shot.name}.png")


def _say(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201 - how far it is


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else _DIRECTORY))
