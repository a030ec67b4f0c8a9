"""`python -m bench.lanes`: what serving tenants in turn costs, and what it is worth.

    drain        queues with lanes, in order, and with everything on, beside an unlaned one
    claims       server time of a claim by the number of lanes
    neighbours   how long a quiet tenant waits, alone and beside one with a million waiting jobs
    shares       Jain's index over equal tenants, and what weights of 1, 2 and 4 are given

All on one server in one run. Progress goes to stderr; bench/README.md has the method.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from bench.lanes_claims import measure
from bench.lanes_drain import Case, compare
from bench.lanes_fairness import EQUALS, WEIGHTS, neighbours, shares
from bench.lanes_fill import decades
from bench.lanes_report import Findings, figures, print_tables, write_files
from bench.report import machine
from bench.server import Server, running_server

PARTS = ("drain", "claims", "neighbours", "shares")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much of everything."""

    jobs: int = 1_000_000
    tenants: int = 100_000
    rounds: int = 3
    between: int = 2
    lanes: int = 100_000
    claim_rounds: int = 25
    noise: int = 1_000_000
    quiet: int = 100
    quiet_spells: int = 20
    shared: int = 300_000


QUICK = Plan(
    jobs=100_000,
    tenants=10_000,
    rounds=2,
    between=1,
    claim_rounds=15,
    noise=200_000,
    quiet=50,
    quiet_spells=10,
    shared=60_000,
)


def cases(tenants: int) -> list[Case]:
    """Every kind of queue, at few tenants and at most."""
    return [
        *(Case("laned", number) for number in decades(tenants)),
        Case("ordered", 100),
        Case("ordered", tenants),
        Case("everything", 100),
        Case("everything", tenants),
    ]


def run(server: Server, scratch: Path, plan: Plan, parts: list[str]) -> Findings:
    """Measure the parts that were asked for; one that breaks costs the others nothing."""
    found = Findings(jobs=plan.jobs)
    measure_part = {
        "drain": _measure_drains,
        "claims": _measure_claims,
        "neighbours": _measure_neighbours,
        "shares": _measure_shares,
    }
    for part in parts:
        try:
            measure_part[part](found, server, scratch, plan)
        except Exception as error:
            found.broken[part] = f"{type(error).__name__}: {error}"
    return found


def _measure_drains(found: Findings, server: Server, scratch: Path, plan: Plan) -> None:
    rated = cases(plan.tenants)
    found.drains = compare(
        server, scratch, rated, plan.jobs, rounds=plan.rounds, between=plan.between
    )


def _measure_claims(found: Findings, server: Server, scratch: Path, plan: Plan) -> None:
    found.curves = measure(server, plan.lanes, plan.claim_rounds)


def _measure_neighbours(found: Findings, server: Server, scratch: Path, plan: Plan) -> None:
    found.neighbours = neighbours(
        server, scratch, noise=plan.noise, spells=plan.quiet_spells, samples=plan.quiet
    )


def _measure_shares(found: Findings, server: Server, scratch: Path, plan: Plan) -> None:
    for weights in ((1,) * EQUALS, WEIGHTS):
        found.shares.append(shares(server, scratch, weights, plan.shared))


def _parts(text: str) -> list[str]:
    wanted = text.split(",")
    for name in wanted:
        if name not in PARTS:
            raise argparse.ArgumentTypeError(
                f"part must be one of {', '.join(PARTS)}, got {name!r}"
            )
    return wanted


def _rounds(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"--rounds must be a number from 1, got {text!r}")
    return int(text)


def main() -> int:
    """Measure, print, and leave files; 1 when something failed."""
    parser = argparse.ArgumentParser(
        prog="./dev bench lanes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="fewer jobs: about four minutes")
    parser.add_argument("--json", action="store_true", help="end stdout with one JSON object")
    parser.add_argument("--parts", type=_parts, default=list(PARTS), metavar="A,B")
    parser.add_argument("--rounds", type=_rounds, metavar="N", help="of drains")
    options = parser.parse_args()
    plan = QUICK if options.quick else Plan()
    if options.rounds:
        plan = replace(plan, rounds=options.rounds)
    with (
        tempfile.TemporaryDirectory(prefix="faena-bench-") as scratch,
        running_server(Path(scratch)) as server,
    ):
        about = f"Valkey {server.version()}, {machine()}"
        found = run(server, Path(scratch), plan, options.parts)
    print_tables(found, Console(stderr=options.json))
    for path in write_files(found, about):
        print(f"wrote {path}", file=sys.stderr)
    if options.json:
        print(json.dumps({"about": about, "quick": options.quick, **figures(found)}))
    return int(bool(found.failed))


if __name__ == "__main__":
    sys.exit(main())
