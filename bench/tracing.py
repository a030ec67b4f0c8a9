"""`python -m bench.tracing`: what it costs a program to be traced.

    off           no provider is set: what every program pays that does not trace
    not sampled   OpenTelemetry's SDK, with a sampler that records nothing
    sampled       the SDK with every span recorded, and an exporter that drops them

CPU time of one process for each job, by turns on one server in one run; the best of all rounds.
Jobs are enqueued one by one, then ten times as many in a list; then a worker drains them, whose
handler does nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from rich.console import Console
from rich.table import Table

from bench.report import machine
from bench.server import running_server
from faena import Faena

LISTS: Final = 10
CASES: Final = ("off", "not sampled", "sampled")


class Taken(NamedTuple):
    """Microseconds of CPU time for each job."""

    enqueue: float
    enqueue_many: float
    drain: float


class _Dropped(SpanExporter):
    """Takes spans, and does nothing with them."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def _provider(case: str) -> TracerProvider | None:
    if case == "off":
        return None
    made = TracerProvider(sampler=ALWAYS_OFF) if case == "not sampled" else TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(_Dropped()))
    return made


async def measure(url: str, case: str, jobs: int) -> Taken:
    """Enqueue and drain, in an app of its own."""
    app = Faena("bench-tracing", url, namespace=f"t-{case[:3]}", tracing=_provider(case))
    queue = app.queue("work", concurrency=100)

    @queue.task
    async def work(number: int) -> None: ...

    await work.enqueue(0)
    taken = await _round(app, work, jobs)
    await queue.obliterate(force=True)
    await app.close()
    return taken


async def _round(app: Faena, work: Any, jobs: int) -> Taken:
    began = time.process_time()
    for number in range(jobs):
        await work.enqueue(number)
    one = time.process_time()
    await work.enqueue_many(range(LISTS * jobs))
    many = time.process_time()
    await app.run_worker(until_empty=True)
    drained = time.process_time()
    return Taken(
        1e6 * (one - began) / jobs,
        1e6 * (many - one) / (LISTS * jobs),
        1e6 * (drained - many) / ((LISTS + 1) * jobs),
    )


def best(found: Sequence[Taken]) -> Taken:
    """The least of each."""
    return Taken(*(min(column) for column in zip(*found, strict=True)))


def _table(found: dict[str, Taken], jobs: int) -> Table:
    table = Table(title=f"CPU time of a job in microseconds, {jobs:,} and {LISTS * jobs:,} jobs")
    for head in ("traced", *Taken._fields):
        table.add_column(head, justify="left" if head == "traced" else "right")
    for case, taken in found.items():
        table.add_row(case, *(f"{one:.1f}" for one in taken))
    return table


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="./dev bench tracing",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--jobs", type=int, default=2_000, help="one by one (default: 2,000)")
    parser.add_argument("--rounds", type=int, default=6, help="default: 6")
    parser.add_argument("--json", action="store_true", help="end stdout with one JSON object")
    given = parser.parse_args()
    if min(given.jobs, given.rounds) < 1:
        parser.error("--jobs and --rounds must be at least 1")
    all_found: dict[str, list[Taken]] = {case: [] for case in CASES}
    with (
        tempfile.TemporaryDirectory(prefix="faena-bench-") as scratch,
        running_server(Path(scratch)) as server,
    ):
        for _ in range(given.rounds):
            for case in CASES:
                all_found[case].append(asyncio.run(measure(server.url, case, given.jobs)))
        about = f"Valkey {server.version()}, {machine()}"
    found = {case: best(taken) for case, taken in all_found.items()}
    console = Console(stderr=given.json)
    console.print(_table(found, given.jobs))
    console.print(about)
    if given.json:
        print(json.dumps({case: taken._asdict() for case, taken in found.items()}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
