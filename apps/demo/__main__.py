"""`./dev demo [--once] [--orgs N] [--speed N] [--seed N] [--json]`: a business day of CampoTech."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from apps.demo.people import GaveUp, People
from apps.demo.plan import CLOSES, OPENS, Act, plan_day
from apps.demo.screen import Screen
from apps.demo.told import Told, gather
from apps.demo.trouble import Troubles
from apps.demo.verdict import Verdict, judge
from apps.demo.watch import Watch
from apps.stage.crew import Fallen
from apps.stage.stage import Stage, Wanted, open_stage

_LOOK_EVERY_S: Final = 0.5
_AI_COSTS: Final = 0.0045
"""Dollars that a business may spend on a day: less than it would."""
_DRAIN_WITHIN_S: Final = 300.0
_SETTLED: Final = """
    SELECT (SELECT count(*) FROM faena.outbox)
        + (SELECT count(*) FROM campotech.invoices WHERE status IN ('pending', 'sending'))
        + (SELECT count(*) FROM campotech.whatsapp_messages
            WHERE direction = 'inbound' AND status = 'received')
"""
_ENDLESS: Final = frozenset({"scheduler", "cleanup", "reconciliation"})
"""Queues that schedules fill: they are never empty for long."""


def main() -> int:
    """Run the demo; 0 when nothing is wrong at the end."""
    options = _arguments()
    logging.getLogger("faena").setLevel(logging.ERROR)  # the screen tells what matters
    with (
        tempfile.TemporaryDirectory(prefix="faena-demo-") as name,
        Screen(is_for_program=options.json) as screen,
    ):
        screen.say("starting Valkey, PostgreSQL, the outside world, the API and the workers")
        ended = _watched(options, Path(name), screen)
    if ended is None:
        return 1
    verdict, told = ended
    screen.conclude(verdict, told)
    if options.json:
        print(json.dumps({**verdict.to_dict(), **told.to_dict()}, indent=2))  # noqa: T201 - what was asked for
    return 0 if verdict.is_good else 1


def _watched(
    options: argparse.Namespace, directory: Path, screen: Screen
) -> tuple[Verdict, Told] | None:
    """What it came to; None if it failed, which is said then."""
    try:
        return asyncio.run(_run(options, directory, screen))
    except* (Fallen, GaveUp) as failed:
        screen.say(f"the demo failed: {failed.exceptions[0]}")
    return None


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev demo",
        description="Businesses in Argentina work for a day: invoices, payments, messages, voice "
        "notes. The tax office is out for a while, workers are killed, one business is noisy, the "
        "budget for AI runs out. Everything runs on this machine.",
    )
    parser.add_argument("--once", action="store_true", help="end after one day")
    parser.add_argument("--orgs", type=int, default=60, help="businesses (default: 60)")
    parser.add_argument(
        "--speed", type=float, default=400, help="how much faster time passes (default: 400)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of all that is random (default: 1)")
    parser.add_argument(
        "--ai-budget",
        default=None,
        type=float,
        metavar="USD",
        help="of a day (default: less than needed)",
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    if not 2 <= options.orgs <= 5_000:
        parser.error(f"--orgs must be 2 to 5000, got {options.orgs}")
    if not 10 <= options.speed <= 2_000:
        parser.error(f"--speed must be 10 to 2000, got {options.speed:g}")
    if options.ai_budget is not None and not 0.01 <= options.ai_budget <= 1e6:
        parser.error(f"--ai-budget must be dollars, 0.01 or more, got {options.ai_budget:g}")
    return options


async def _run(
    options: argparse.Namespace, directory: Path, screen: Screen
) -> tuple[Verdict, Told]:
    budget = options.ai_budget or max(0.1, options.orgs * _AI_COSTS)
    wanted = Wanted(
        organizations=options.orgs,
        speed=options.speed,
        seed=options.seed,
        environ={"OPENAI_DAILY_BUDGET": f"{budget:.2f} USD"},
    )
    async with open_stage(wanted, directory, screen.say) as stage:
        return await _play(stage, options, screen)


async def _play(stage: Stage, options: argparse.Namespace, screen: Screen) -> tuple[Verdict, Told]:
    """Days until one is enough or the viewer has seen enough."""
    screen.say(f"the dashboard, for one person: {await stage.link()}")
    began = time.monotonic()
    people, watch = People(stage, options.seed), Watch(stage, screen.say)
    troubles = Troubles(stage, screen.say, options.seed)
    playing = asyncio.create_task(_days(stage, options, people, troubles, screen))
    looking = [
        asyncio.create_task(watch.listen()),
        asyncio.create_task(_look(watch, stage, screen)),
        asyncio.create_task(people.receive()),
    ]
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, playing.cancel)
    try:
        await asyncio.wait({playing, *looking}, return_when=asyncio.FIRST_COMPLETED)
        for task in looking:
            if task.done():
                task.result()  # they only end by failing
        try:
            await playing
        except asyncio.CancelledError:
            screen.say("enough seen: finishing what has begun")
        await people.settle()
        await _drain(stage, screen)
    finally:
        for task in (playing, *looking):
            task.cancel()
        await asyncio.gather(playing, *looking, return_exceptions=True)
    told = await gather(stage, screen.began_at, time.monotonic() - began)
    return await judge(stage, people.accepted, troubles.happened, watch.seen), told


async def _days(
    stage: Stage, options: argparse.Namespace, people: People, troubles: Troubles, screen: Screen
) -> None:
    day = 1
    while True:
        people.begin(day)
        await _day(plan_day(options.orgs, options.seed, day=day), stage, people, troubles, screen)
        if options.once:
            return
        day += 1
        screen.say(f"day {day}")


async def _day(
    acts: list[Act], stage: Stage, people: People, troubles: Troubles, screen: Screen
) -> None:
    began, speed = time.monotonic(), stage.wanted.speed / 60
    async with asyncio.TaskGroup() as doing:
        for act in acts:
            await asyncio.sleep(max(0.0, began + (act.at - OPENS) / speed - time.monotonic()))
            screen.set_clock(OPENS + (time.monotonic() - began) * speed)
            if act.kind == "trouble":
                doing.create_task(troubles.make(act.given))
            else:
                doing.create_task(people.do(act))
    screen.set_clock(CLOSES)
    screen.say("the businesses close; what is left is finished")


async def _look(watch: Watch, stage: Stage, screen: Screen) -> None:
    """Show the queues until cancelled; a process that ended by itself ends the demo."""
    while True:
        stage.crew.check()
        screen.show(await watch.look())
        await asyncio.sleep(_LOOK_EVERY_S)


async def _drain(stage: Stage, screen: Screen) -> None:
    """Until all that was accepted is done and noted."""
    try:
        async with asyncio.timeout(_DRAIN_WITHIN_S):
            while not await _is_settled(stage):  # noqa: ASYNC110 - servers tell nobody
                await asyncio.sleep(_LOOK_EVERY_S)
    except TimeoutError:
        screen.say(f"not finished after {_DRAIN_WITHIN_S:.0f} s")


async def _is_settled(stage: Stage) -> bool:
    ((left,),) = await stage.rows(_SETTLED)
    if left:
        return False
    for queue in stage.system.queues.values():
        if queue.name not in _ENDLESS and (await queue.overview()).live:
            return False
    return (await stage.system.pg.history.view()).entries == 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # before the demo listened for it
        sys.exit(130)
