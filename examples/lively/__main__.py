"""`python -m examples.lively [--once] [--jobs N]`: the demo."""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from examples.lively.crew import Crew, Fallen
from examples.lively.ledger import Ledger, Reader
from examples.lively.screen import Row, Screen
from examples.lively.shop import open_shop
from examples.lively.story import Stage, day
from examples.lively.verdict import Verdict, judge
from faena.embedded import Embedded

_WORKERS = 3
_ONCE_WITHIN_S = 120.0
_LOOK_EVERY_S = 0.25


def main() -> int:
    """Run the demo; 0 when nothing was lost or doubled."""
    options = _arguments()
    with tempfile.TemporaryDirectory(prefix="faena-demo-") as name:
        directory = Path(name)
        with Embedded.join(directory / "data") as server, Screen() as screen:
            try:
                verdict = asyncio.run(_run(options, server.url, directory, screen))
            except Fallen as fallen:
                screen.say(f"the demo failed: {fallen}")
                return 1
        screen.conclude(verdict)
    return 0 if verdict.is_good else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev demo", description="A day of background jobs on an embedded Valkey."
    )
    parser.add_argument("--once", action="store_true", help="end after one day")
    parser.add_argument("--jobs", type=int, default=4000, help="jobs of one day (default: 4000)")
    options = parser.parse_args()
    if not 100 <= options.jobs <= 100_000:
        parser.error(f"--jobs must be 100 to 100000, got {options.jobs}")
    return options


async def _run(options: argparse.Namespace, url: str, directory: Path, screen: Screen) -> Verdict:
    crew = Crew(directory)
    ledger = directory / "ledger"
    Ledger(ledger)  # the file is there before anybody reads it
    shop = open_shop(url)
    stage = Stage(
        shop=shop,
        crew=crew,
        ledger=Reader(ledger),
        screen=screen,
        jobs=options.jobs,
        length_s=min(16.0, max(4.0, options.jobs / 250)),
        chance=random.Random(),
    )
    async with shop.app:
        try:
            for _ in range(_WORKERS):
                crew.hire()
            return await _play(stage, is_once=options.once)
        finally:
            crew.kill_all()


async def _play(stage: Stage, *, is_once: bool) -> Verdict:
    """Days until one is enough or the viewer has seen enough."""
    watching = asyncio.create_task(_watch(stage))
    playing = asyncio.create_task(_days(stage, is_once=is_once))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, playing.cancel)
    try:
        await asyncio.wait({watching, playing}, return_when=asyncio.FIRST_COMPLETED)
        if watching.done():
            watching.result()  # it only ends by failing
        past = await playing
    finally:
        for task in (watching, playing):
            task.cancel()
        await asyncio.gather(watching, playing, return_exceptions=True)
    stage.screen.say("the workers leave")
    await stage.crew.leave()
    return past + await judge(stage.plan, stage.ledger, stage.shop.queues)


async def _days(stage: Stage, *, is_once: bool) -> Verdict:
    """The verdict on past days; the last one, whole or not, is still to be judged."""
    past = Verdict()
    try:
        while True:
            async with asyncio.timeout(_ONCE_WITHIN_S if is_once else None):
                await day(stage)
            if is_once:
                return past
            past += await judge(stage.plan, stage.ledger, stage.shop.queues)
            stage.plan.clear()
            for queue in stage.shop.queues:
                await queue.obliterate()
            stage.screen.say(f"a new day; so far {past.jobs:,} jobs, {past.lost} lost")
    except asyncio.CancelledError:
        stage.screen.say("enough seen: finishing what runs")
    except TimeoutError:
        stage.screen.say(f"not finished after {_ONCE_WITHIN_S:.0f} s")
    return past


async def _watch(stage: Stage) -> None:
    """Show the queues until cancelled; a worker that ended by itself ends the demo."""
    before: dict[str, tuple[float, int]] = {}
    while True:
        stage.crew.check()
        rows: list[Row] = []
        for queue in stage.shop.queues:
            overview = await queue.overview()
            now, completed = time.monotonic(), overview.counts["completed"]
            then, had = before.get(queue.name, (now - 1, completed))
            if now - then >= 1:
                before[queue.name] = (now, completed)
            rate = max(0.0, (completed - had) / max(now - then, 0.001))
            hold = ", ".join(hold.reason for hold in overview.holds)
            rows.append(Row(queue.name, overview.counts, rate, hold))
        stage.screen.show(rows)
        await asyncio.sleep(_LOOK_EVERY_S)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # before the demo listened for it
        sys.exit(130)
