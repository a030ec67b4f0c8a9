"""`./dev bench outbox`: jobs that are enqueued in a transaction, beside queues inside PostgreSQL.

All systems use one PostgreSQL server in one run, each in a database of its own that is made anew
for every measurement. A run in which a job is lost or starts twice has no figure.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from tests._support.postgres import Cluster

from bench.adapter import Adapter, PeerFailed
from bench.campaign import plain
from bench.catalogue import Peer
from bench.environment import Unavailable
from bench.outbox_measure import Bench, Plan
from bench.report import machine
from bench.server import running_server

_UVLOOP = "uvloop==0.23.0"
SYSTEMS = (
    Peer(name="faena", module="faena"),
    Peer(
        name="procrastinate",
        module="procrastinate",
        packages=("procrastinate==3.10.0", "psycopg[binary,pool]==3.3.9", _UVLOOP),
    ),
    Peer(
        name="pgqueuer",
        module="pgqueuer",
        packages=("pgqueuer==1.6.0", "asyncpg==0.32.0", _UVLOOP),
    ),
)
FIGURES = {
    "commits": ("transactions of 1 job", "1/s", True),
    "bulk": ("jobs of transactions of 100", "jobs/s", True),
    "drain": ("drain", "jobs/s", True),
    "latency_p50": ("commit to start p50", "ms", False),
    "latency_p99": ("commit to start p99", "ms", False),
}
_SETTINGS = ("shared_buffers = 256MB", "max_wal_size = 4GB", "checkpoint_timeout = 30min")
"""The same for all; commits are flushed to the disk, as they are by default."""


@dataclass
class Results:
    """Samples by figure and system, and why anything is missing."""

    samples: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def add(self, system: str, figures: dict[str, float]) -> None:
        """Keep a measurement."""
        for name, value in figures.items():
            self.samples.setdefault(name, {}).setdefault(system, []).append(value)

    def summary(self) -> dict[str, dict[str, dict[str, float]]]:
        """Figure → system → median and best."""
        return {
            name: {
                system: {
                    "median": statistics.median(values),
                    "best": (max if FIGURES[name][2] else min)(values),
                }
                for system, values in of.items()
            }
            for name, of in self.samples.items()
        }


def run(plan: Plan, rounds: int, systems: Sequence[Peer], works: Sequence[str]) -> Results:
    """All systems once, then all again."""
    results = Results()
    with (
        tempfile.TemporaryDirectory(prefix="faena-bench-") as directory,
        Cluster(*_SETTINGS) as cluster,
        running_server(Path(directory)) as broker,
    ):
        os.environ["BENCH_BROKER"] = broker.url
        bench = Bench(cluster, broker, Path(directory), plan)
        adapters: list[Adapter] = []
        for peer in systems:
            try:
                adapters.append(bench.ready(peer))
            except (Unavailable, PeerFailed) as reason:
                results.failed[peer.name] = str(reason)
        for number in range(rounds):
            for work, measure in bench.works().items():
                if work not in works:
                    continue
                turn = number % max(1, len(adapters))
                for adapter in adapters[turn:] + adapters[:turn]:
                    _measure(results, work, adapter, measure)
    return results


def _measure(
    results: Results,
    work: str,
    adapter: Adapter,
    measure: Callable[[Adapter], dict[str, float]],
) -> None:
    name = adapter.peer.name
    try:
        figures = measure(adapter)
    except PeerFailed as failure:
        results.failed[f"{name} {work}"] = str(failure)
        figures = {}
    else:
        results.add(name, figures)
    told = " · ".join(f"{key} {plain(value)}" for key, value in figures.items())
    print(f"{work:<8} {name:<14} {told or results.failed[f'{name} {work}']}", file=sys.stderr)


def show(results: Results) -> None:
    """A table of medians and bests, and what failed."""
    console, summary = Console(), results.summary()
    table = Table(title="median (best)", title_justify="left")
    table.add_column("system")
    for label, unit, _ in FIGURES.values():
        table.add_column(f"{label}\n{unit}", justify="right")
    for peer in SYSTEMS:
        cells: list[str] = []
        for name in FIGURES:
            one = summary.get(name, {}).get(peer.name)
            cells.append(f"{plain(one['median'])} ({plain(one['best'])})" if one else "-")
        table.add_row(peer.name, *cells)
    console.print(table)
    for what, why in results.failed.items():
        console.print(f"failed {what}: {why}", markup=False)


def main(given: Sequence[str]) -> int:
    """Exit code 1 if a measurement of faena failed."""
    parser = argparse.ArgumentParser(prog="./dev bench outbox", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=20_000, help="of the backlog")
    parser.add_argument("--commits", type=int, default=2_000, help="transactions of one job")
    parser.add_argument("--samples", type=int, default=300, help="of the latency")
    parser.add_argument("--works", default="commits,backlog,latency")
    parser.add_argument("--systems", default=",".join(one.name for one in SYSTEMS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(given)
    plan = Plan(commits=options.commits, jobs=options.jobs, samples=options.samples)
    wanted = options.systems.split(",")
    systems = [one for one in SYSTEMS if one.name in wanted]
    results = run(plan, options.rounds, systems, options.works.split(","))
    if options.json:
        told: dict[str, Any] = {
            "machine": machine(),
            "versions": {one.name: one.version for one in SYSTEMS},
            "figures": results.summary(),
            "samples": results.samples,
            "failed": results.failed,
        }
        print(json.dumps(told))
    else:
        show(results)
    return 1 if any(one.startswith("faena") for one in results.failed) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
