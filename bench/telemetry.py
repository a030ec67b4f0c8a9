"""`python -m bench.telemetry`: what it costs a drain to be seen.

    measured   every attempt is measured and counted by task, as always
    watched    and metrics are scraped once a second, over HTTP, from the worker
    all        and alerts are judged, health, readiness and the signal for autoscalers are asked for
               once a second, and the log is in JSON

Both are compared with a worker that measures nothing, which no program can ask for. Drains take
turns on one server in one run. `best` compares the fastest of each, `ratio` is the median of pairs,
`worker us` and `server us` are CPU time for each job, with and without.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.lanes_drain import BASE, Case, Rated, compare
from bench.lanes_shop import ALL, UNMEASURED, WATCHED
from bench.report import machine
from bench.server import running_server

CASES = (BASE, Case(WATCHED, 0), Case(ALL, 0))
NAMES = dict(zip(CASES, ("measured", WATCHED, ALL), strict=True))


def _table(bare: Rated, found: Sequence[Rated], jobs: int) -> Table:
    table = Table(title=f"drain of {jobs:,} jobs by one worker, beside one that measures nothing")
    for head in (
        "worker",
        "jobs/s",
        "without",
        "best",
        "ratio",
        "least",
        "most",
        "worker us",
        "server us",
    ):
        table.add_column(head, justify="left" if head == "worker" else "right")
    for one in found:
        ratios = (one.best / bare.best, one.ratio)
        table.add_row(
            NAMES[one.case],
            f"{one.rate:,.0f}",
            f"{bare.rate:,.0f}",
            *(f"{100 * ratio:.1f} %" for ratio in ratios),
            f"{one.worker_cpu_us:.1f} / {bare.worker_cpu_us:.1f}",
            f"{one.server_cpu_us:.1f} / {bare.server_cpu_us:.1f}",
        )
    return table


def _figures(bare: Rated, one: Rated) -> dict[str, object]:
    return {
        "jobs_per_s": round(one.rate),
        "without": round(bare.rate),
        "best": round(one.best / bare.best, 3),
        "ratio": round(one.ratio, 3),
        "worker_cpu_us": round(one.worker_cpu_us, 2),
        "worker_cpu_us_without": round(bare.worker_cpu_us, 2),
        "ratios": [round(ratio, 3) for ratio in one.ratios],
    }


def main() -> int:
    """Measure and print; 1 when a drain failed."""
    parser = argparse.ArgumentParser(
        prog="./dev bench telemetry",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--jobs", type=int, default=100_000, help="per drain (default: 100,000)")
    parser.add_argument("--rounds", type=int, default=10, help="default: 10")
    parser.add_argument("--json", action="store_true", help="end stdout with one JSON object")
    given = parser.parse_args()
    if min(given.jobs, given.rounds) < 1:
        parser.error("--jobs and --rounds must be at least 1")
    with (
        tempfile.TemporaryDirectory(prefix="faena-bench-") as scratch,
        running_server(Path(scratch)) as server,
    ):
        about = f"Valkey {server.version()}, {machine()}"
        base = Case(UNMEASURED, 0)
        bare, *found = compare(
            server, Path(scratch), CASES, given.jobs, rounds=given.rounds, between=1, base=base
        )
    Console(stderr=given.json).print(_table(bare, found, given.jobs))
    failed = [reason for one in (bare, *found) for reason in one.failed]
    for reason in failed:
        print(f"failed: {reason}", file=sys.stderr)
    if given.json:
        figures = {NAMES[one.case]: _figures(bare, one) for one in found}
        print(json.dumps({"about": about, "jobs": given.jobs, **figures}))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
