"""`python -m bench.upstreams`: what it costs a drain that every job calls an upstream.

    guarded          a closed breaker and two limits, beside the same queue without an upstream
    priced           a price and budgets for the day and the month as well
    guarded laned    two limits of each tenant as well, beside a laned queue of as many tenants

Drains with and without take turns on one server in one run. `best` compares the fastest of each,
`ratio` is the median of pairs; bench/README.md has the method.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from bench.lanes_drain import BASE, Case, Rated, compare, drain_once
from bench.lanes_fill import CHUNK
from bench.report import machine
from bench.server import Server, running_server


class Compared(NamedTuple):
    """A queue with an upstream and the same without one."""

    bare: Rated
    guarded: Rated
    batches: int
    """Script calls of the worker in a drain without: what it claims and settles at once."""
    more_calls: int
    """How many more there are with it."""

    @property
    def per_batch(self) -> float:
        """Round trips that permission costs, for each batch."""
        return self.more_calls / self.batches

    @property
    def best(self) -> float:
        """The fastest drain with it, as a part of the fastest without."""
        return self.guarded.best / self.bare.best


def run(server: Server, scratch: Path, jobs: int, tenants: int, rounds: int) -> list[Compared]:
    """All pairs, one after the other."""
    pairs = [
        (BASE, Case("guarded", 0)),
        (BASE, Case("priced", 0)),
        (Case("laned", tenants), Case("guarded laned", tenants)),
    ]
    found: list[Compared] = []
    for base, case in pairs:
        bare, guarded = compare(server, scratch, [case], jobs, rounds=rounds, between=1, base=base)
        without, with_it = (_script_calls(server, scratch, one, jobs) for one in (base, case))
        found.append(Compared(bare, guarded, without, with_it - without))
    return found


def _script_calls(server: Server, scratch: Path, case: Case, jobs: int) -> int:
    """Those of the worker in one drain."""
    before = server.calls_of("fcall")
    drain_once(server, scratch, case, jobs)
    return server.calls_of("fcall") - before - math.ceil(jobs / CHUNK)


def _table(found: Sequence[Compared], jobs: int) -> Table:
    table = Table(title=f"drain of {jobs:,} jobs by one worker; more calls of scripts per batch")
    speeds = ("jobs/s", "without", "best", "ratio", "least", "most")
    for head in ("queue", *speeds, "cpu us", "without", "calls"):
        table.add_column(head, justify="left" if head == "queue" else "right")
    for one in found:
        ratios = [one.best, one.guarded.ratio, min(one.guarded.ratios), max(one.guarded.ratios)]
        table.add_row(
            one.guarded.case.name,
            f"{one.guarded.rate:,.0f}",
            f"{one.bare.rate:,.0f}",
            *(f"{100 * ratio:.0f} %" for ratio in ratios),
            f"{one.guarded.server_cpu_us:.1f}",
            f"{one.bare.server_cpu_us:.1f}",
            f"{one.per_batch:.2f}",
        )
    return table


def _figures(one: Compared) -> dict[str, object]:
    return {
        "jobs_per_s": round(one.guarded.rate),
        "without": round(one.bare.rate),
        "best": round(one.best, 3),
        "ratio": round(one.guarded.ratio, 3),
        "ratios": [round(ratio, 3) for ratio in one.guarded.ratios],
        "server_cpu_us_per_job": round(one.guarded.server_cpu_us, 2),
        "server_cpu_us_per_job_without": round(one.bare.server_cpu_us, 2),
        "more_calls_per_batch": round(one.per_batch, 3),
    }


def main() -> int:
    """Measure and print; 1 when a drain failed."""
    parser = argparse.ArgumentParser(
        prog="./dev bench upstreams",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--jobs", type=int, default=100_000, help="per drain (default: 100,000)")
    parser.add_argument("--tenants", type=int, default=1000, help="default: 1,000")
    parser.add_argument("--rounds", type=int, default=10, help="default: 10")
    parser.add_argument("--json", action="store_true", help="end stdout with one JSON object")
    given = parser.parse_args()
    if min(given.jobs, given.tenants, given.rounds) < 1:
        parser.error("--jobs, --tenants and --rounds must be at least 1")
    with (
        tempfile.TemporaryDirectory(prefix="faena-bench-") as scratch,
        running_server(Path(scratch)) as server,
    ):
        about = f"Valkey {server.version()}, {machine()}"
        found = run(server, Path(scratch), given.jobs, given.tenants, given.rounds)
    Console(stderr=given.json).print(_table(found, given.jobs))
    failed = [reason for one in found for reason in (*one.bare.failed, *one.guarded.failed)]
    for reason in failed:
        print(f"failed: {reason}", file=sys.stderr)
    if given.json:
        figures = {one.guarded.case.name: _figures(one) for one in found}
        print(json.dumps({"about": about, "jobs": given.jobs, **figures}))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
