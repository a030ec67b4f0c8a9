"""`python -m bench.archive`: how much memory the archiver needs, and how fast it is.

Pings of many tenants in daily partitions, or in a plain table, are archived into a directory by a
process of its own: exported, stored, read back, compared, and dropped or deleted. Its memory is
the most that its kernel has counted (VmHWM); the PostgreSQL beside it has none of that.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from rich.console import Console
from tests._support.postgres import QUICK, Cluster

from bench.report import machine
from faena import Faena
from faena.pg import Archive, Postgres
from faena.pg.migration import migrate

DAYS = 10
TENANTS = 50
GOAL_MB = 200.0
_SETTINGS = ("shared_buffers = 256MB", "max_wal_size = 4GB", "autovacuum = off", "work_mem = 64MB")
_COLUMNS = """
    id bigint NOT NULL, organization_id text NOT NULL, user_id text NOT NULL,
    latitude decimal(10, 8) NOT NULL, longitude decimal(11, 8) NOT NULL, accuracy decimal(6, 2),
    recorded_at timestamptz NOT NULL, PRIMARY KEY (id, recorded_at)
"""


class Found(NamedTuple):
    """What one run measured."""

    rows: int
    is_split: bool
    seconds: float
    peak_mb: float
    """Of the archiver's process, with Python and all it has imported."""
    idle_mb: float
    """Of the same process before the first row."""
    objects: int
    size_mb: float
    raw_mb: float

    @property
    def speed(self) -> float:
        """Rows in a second."""
        return self.rows / self.seconds


def _declared(url: str, folder: str) -> Postgres:
    pg = Postgres(Faena("bench"), url, relay=False)
    pg.retain(
        "locations",
        by="recorded_at",
        keep="30d",
        tenant="organization_id",
        then=Archive(to=folder),
    )
    return pg


async def _prepare(url: str, rows: int, *, is_split: bool) -> None:
    first = datetime.now(UTC).date() - timedelta(days=60 + DAYS)
    async with Postgres(Faena("bench"), url, relay=False) as pg:
        await migrate(pg)
        kind = "PARTITION BY RANGE (recorded_at)" if is_split else ""
        async with pg.autocommit() as connection:
            await connection.execute(f"CREATE TABLE locations ({_COLUMNS}) {kind}".encode())
        if is_split:
            table = pg.partitioned(
                "locations", by="recorded_at", every="day", tenant="organization_id", ahead=1
            )
            await table.ensure(since=first)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"INSERT INTO locations SELECT n, 'org-' || n % {TENANTS}, 'user-' || n % 5000,"
            f" -34.6 + n % 1000 / 5000.0, -58.4 + n % 777 / 5000.0, n % 30,"
            f" '{first} 00:00+00'::timestamptz + n * (interval '{DAYS} days' / {rows})"
            f" FROM generate_series(0, {rows - 1}::bigint) n".encode()
        )
        if not is_split:
            connection.execute("CREATE INDEX ON locations (recorded_at)")
        connection.execute("VACUUM ANALYZE locations")


def _memory_mb() -> float:
    status = Path("/proc/self/status").read_text().splitlines()
    (line,) = (one for one in status if one.startswith("VmHWM"))
    return int(line.split()[1]) / 1000


def _archive(url: str, folder: str) -> int:
    """What the process of its own does."""

    async def work() -> dict[str, Any]:
        async with _declared(url, folder) as pg:
            await pg.retention_views()
            idle, began = _memory_mb(), time.perf_counter()
            (done,) = await pg.archive()
            seconds = time.perf_counter() - began
            return {"rows": done.rows, "objects": done.objects, "problem": done.problem,
                    "seconds": seconds, "idle": idle, "peak": _memory_mb()}  # fmt: skip

    sys.stdout.write(json.dumps(asyncio.run(work())))
    return 0


def measure(rows: int, *, is_split: bool) -> Found:
    """Everything, on a server of its own."""
    with Cluster(*QUICK, *_SETTINGS) as cluster, tempfile.TemporaryDirectory() as folder:
        url = cluster.create("bench")
        asyncio.run(_prepare(url, rows, is_split=is_split))
        command = [sys.executable, "-m", "bench.archive", "--process", url, folder]
        told = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        if told["problem"] or told["rows"] != rows:
            raise RuntimeError(f"{told['rows']} of {rows} rows have left: {told['problem']}")
        with cluster.connected("bench") as connection:
            (raw, size, left) = connection.execute(
                "SELECT sum(raw_bytes), sum(size), (SELECT count(*) FROM locations)"
                " FROM faena.archives WHERE state = 'archived'"
            ).fetchone() or (0, 0, 0)
        assert left == 0, "all rows must have left"
    return Found(
        rows=rows,
        is_split=is_split,
        seconds=told["seconds"],
        peak_mb=told["peak"],
        idle_mb=told["idle"],
        objects=told["objects"],
        size_mb=float(size) / 1e6,
        raw_mb=float(raw) / 1e6,
    )


def main(given: Sequence[str]) -> int:
    """Exit code 1 if the goal is missed."""
    parser = argparse.ArgumentParser(prog="./dev bench archive", description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--plain", action="store_true", help="a table without partitions")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--process", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(given)
    if options.process:
        return _archive(*options.process)
    found = measure(options.rows, is_split=not options.plain)
    if options.json:
        told = {"machine": machine(), **found._asdict(), "speed": found.speed}
        sys.stdout.write(json.dumps(told) + "\n")
    else:
        kind = "daily partitions" if found.is_split else "a plain table"
        Console().print(
            f"{found.rows:,} rows of {kind} in {found.seconds:.1f} s, {found.speed:,.0f} rows/s; "
            f"{found.objects:,} objects, {found.raw_mb:,.0f} MB as {found.size_mb:,.0f} MB\n"
            f"memory {found.peak_mb:.0f} MB at most, {found.idle_mb:.0f} MB before the first row, "
            f"goal {GOAL_MB:g} MB"
        )
    return 0 if found.peak_mb < GOAL_MB else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
