"""`./dev load [SCENARIO …] [--quick] [--orgs N] [--json] [--seed N]`: load tests of CampoTech."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from apps.load import report
from apps.load.crowd import CrowdFailed
from apps.load.figure import Findings
from apps.load.goals import ELSEWHERE
from apps.load.scenario import SCENARIOS, play_all
from apps.load.scene import Sizes
from apps.load.screen import Screen
from apps.stage.crew import Fallen

_SPEED: Final = 600.0
_SCALE, _QUICK = 0.08, 0.02
_ROWS, _QUICK_ROWS = 500_000, 60_000


def main() -> int:
    """Run the scenarios; 1 if a promise was broken."""
    options = _arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started ends, too
    logging.getLogger("faena").setLevel(logging.ERROR)  # the screen tells what matters
    about = _about(options)
    with (
        tempfile.TemporaryDirectory(prefix="faena-load-") as name,
        Screen(is_for_program=options.json) as screen,
    ):
        screen.say("starting Valkey, PostgreSQL, the outside world, the API and the workers")
        found = _played(options, Path(name), screen)
    if found is None:
        return 1
    written = report.write(options.directory, about, found, ELSEWHERE)
    screen.conclude(found, ELSEWHERE)
    screen.tell(f"the report is {written}")
    if options.json:
        told = {**about, "scenarios": [one.to_dict() for one in found]}
        print(json.dumps(told, indent=2))  # noqa: T201 - what was asked for
    return 0 if all(one.is_kept for one in found) else 1


def _played(options: argparse.Namespace, directory: Path, screen: Screen) -> list[Findings] | None:
    """What was found; None if it failed, which is said then."""
    try:
        return asyncio.run(_play(options, directory, screen))
    except* (Fallen, CrowdFailed) as failed:
        screen.say(f"the load test failed: {failed.exceptions[0]}")
    return None


async def _play(options: argparse.Namespace, directory: Path, screen: Screen) -> list[Findings]:
    sizes = Sizes(
        scale=options.scale,
        organizations=options.orgs,
        users=options.users,
        rows=options.rows,
        speed=options.speed,
        seed=options.seed,
    )
    wanted = {name: play for name, play in SCENARIOS.items() if name in options.scenarios}
    return await play_all(wanted, sizes, directory, screen)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev load",
        description="A thousand users on a CampoTech on this machine, an outage of the tax office, "
        "years of jobs: the figures of the specification are measured, and each accepted invoice "
        "is counted in the ledger of the tax office.",
    )
    parser.add_argument(
        "scenarios", nargs="*", metavar="SCENARIO", help=f"{', '.join(SCENARIOS)} (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="about a minute, to see that it works")
    parser.add_argument("--orgs", type=int, default=60, help="businesses (default: 60)")
    parser.add_argument("--users", type=int, default=1_000, help="at once (default: 1000)")
    parser.add_argument("--rows", type=int, help=f"jobs of partitions (default: {_ROWS})")
    parser.add_argument("--scale", type=float, help=f"of the times asked for (default: {_SCALE})")
    parser.add_argument(
        "--speed", type=float, default=_SPEED, help="of business time (default: %(default)g)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of all that is random (default: 1)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--directory", type=Path, default=Path(".load"), help="for the report")
    return _checked(parser, parser.parse_args())


def _checked(parser: argparse.ArgumentParser, options: argparse.Namespace) -> argparse.Namespace:
    """Refuse what makes no sense, and fill in what was not said."""
    if unknown := sorted(set(options.scenarios) - SCENARIOS.keys()):
        parser.error(f"a scenario must be one of {', '.join(SCENARIOS)}, got {unknown[0]!r}")
    options.scenarios = options.scenarios or list(SCENARIOS)
    options.scale = options.scale or (_QUICK if options.quick else _SCALE)
    options.rows = options.rows or (_QUICK_ROWS if options.quick else _ROWS)
    for name, least, most in (
        ("orgs", 2, 5_000),
        ("users", 1, 20_000),
        ("rows", 1_000, 100_000_000),
        ("scale", 0.001, 10),
        ("speed", 10, 2_000),
    ):
        if not least <= getattr(options, name) <= most:
            parser.error(f"--{name} must be {least} to {most}, got {getattr(options, name):g}")
    return options


def _about(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "at": time.strftime("%Y-%m-%d %H:%M:%S"),
        "machine": report.machine(),
        "busy before it began": f"{os.getloadavg()[0]:.1f} processes",
        "scenarios": options.scenarios,
        "organizations": options.orgs,
        "users": options.users,
        "rows": options.rows,
        "scale": options.scale,
        "speed": options.speed,
        "seed": options.seed,
    }


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
