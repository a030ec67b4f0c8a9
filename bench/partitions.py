"""`python -m bench.partitions`: what partitions are worth to a query, and what they cost ingest.

    query     one tenant's recent day, from a plain table with an index on the tenant, from the
              same with the index on (tenant, time) that partitions have, and from daily partitions
    ingest    rows are written one transaction after another while partitions are created ahead;
              the longest time that one of them took, beside the same without partitions created

One PostgreSQL without fsync, in one run; bench/README.md has the method.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import psycopg
from rich.console import Console
from rich.table import Table
from tests._support.postgres import QUICK, Cluster

from bench.report import machine
from faena import Faena
from faena.pg import Postgres

DAYS = 60
TENANTS = 200
GOAL_RATIO = 20.0
GOAL_STALL_MS = 200.0
_SETTINGS = ("shared_buffers = 1GB", "max_wal_size = 8GB", "autovacuum = off")
_COLUMNS = """
    id bigint NOT NULL, organization_id text NOT NULL, user_id text NOT NULL,
    latitude double precision NOT NULL, longitude double precision NOT NULL,
    recorded_at timestamptz NOT NULL
"""
_QUERY = """
    SELECT user_id, count(*), max(recorded_at) FROM {} WHERE organization_id = 'org-7'
    AND recorded_at >= '{} 00:00+00' AND recorded_at < '{} 00:00+00' GROUP BY user_id
"""


class Timed(NamedTuple):
    """A query on one table."""

    cold_ms: float
    """The first time."""
    warm_ms: float
    """The median of the next ones."""
    blocks: int
    """Read by one of them, from memory or disk."""
    plan: list[str]


class Found(NamedTuple):
    """What one run measured."""

    rows: int
    plain: Timed
    """With an index on the tenant."""
    indexed: Timed
    """With an index on (tenant, time)."""
    partitioned: Timed
    stall_ms: float
    """The longest insert while partitions were created."""
    usual_ms: float
    """The longest insert without."""
    inserts: int
    created: int

    @property
    def ratio(self) -> float:
        """How many times faster the query is."""
        return self.plain.warm_ms / self.partitioned.warm_ms


def _fill(connection: psycopg.Connection[Any], table: str, rows: int) -> None:
    """Pings in the order of their time, as they arrive: tenants take turns."""
    connection.execute(
        f"INSERT INTO {table} SELECT n, 'org-' || (n * 7919 % {TENANTS}), 'user-' || n % 5000,"
        f" -34.6 + n % 1000 / 5000.0, -58.4 + n % 777 / 5000.0,"
        f" date_trunc('day', now(), 'UTC') - interval '{DAYS} days'"
        f" + n * (interval '{DAYS} days' / {rows})"
        f" FROM generate_series(0, {rows - 1}::bigint) n".encode()
    )


async def _prepare(pg: Postgres, rows: int) -> None:
    async with pg.autocommit() as connection:
        await connection.execute(f"CREATE UNLOGGED TABLE plain ({_COLUMNS})".encode())
        await connection.execute(
            f"CREATE TABLE locations ({_COLUMNS}) PARTITION BY RANGE (recorded_at)".encode()
        )
    locations = pg.partitioned(
        "locations", by="recorded_at", every="day", tenant="organization_id", ahead=1
    )
    since = datetime.now(UTC).date().toordinal() - DAYS - 1
    await locations.ensure(since=datetime.fromordinal(since).date())
    url = await pg.url()

    def fill(table: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            _fill(connection, table, rows)

    for table in ("plain", "locations"):
        await asyncio.to_thread(fill, table)
    async with pg.autocommit() as connection:
        await connection.execute("ALTER TABLE plain ADD PRIMARY KEY (id)")
        await connection.execute("CREATE INDEX ON plain (organization_id)")
        await connection.execute("VACUUM ANALYZE plain")
        await connection.execute("VACUUM ANALYZE locations")


async def _time(pg: Postgres, table: str, rounds: int) -> Timed:
    today = datetime.now(UTC).date()
    query = _QUERY.format(table, today - timedelta(days=1), today).encode()
    times: list[float] = []
    async with pg.autocommit() as connection:
        for _ in range(rounds + 1):
            began = time.perf_counter()
            await (await connection.execute(query)).fetchall()
            times.append(1000 * (time.perf_counter() - began))
        found = await connection.execute(b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + query)
        row = await found.fetchone()
    plan = row[0][0]["Plan"] if row else {}
    blocks = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return Timed(times[0], statistics.median(times[1:]), blocks, sorted(_relations(plan)))


def _relations(plan: dict[str, Any]) -> set[str]:
    """What a plan reads: the kind of the scan, and the table."""
    own = {f"{plan['Node Type']} {plan['Relation Name']}"} if "Relation Name" in plan else set()
    return own.union(*(_relations(one) for one in plan.get("Plans", [])))


class Ingest:
    """A program that inserts one row after another, and remembers the longest insert."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._is_over = threading.Event()
        self.inserts, self.longest_ms = 0, 0.0

    def run(self) -> None:
        """Until it is stopped."""
        words = "INSERT INTO locations VALUES (%s, 'org-7', 'user-1', 0, 0, now())"
        with psycopg.connect(self._url, autocommit=True) as connection:
            while not self._is_over.is_set():
                began = time.perf_counter()
                connection.execute(words, [self.inserts])
                self.longest_ms = max(self.longest_ms, 1000 * (time.perf_counter() - began))
                self.inserts += 1

    def stop(self) -> None:
        """Let it end."""
        self._is_over.set()


async def _ingest(pg: Postgres, ahead: int) -> tuple[Ingest, Ingest, int]:
    """Without partitions being created, and then with."""
    usual, stalled, made = Ingest(await pg.url()), Ingest(await pg.url()), 0
    running = asyncio.create_task(asyncio.to_thread(usual.run))
    await asyncio.sleep(3)
    usual.stop()
    await running
    more = Postgres(Faena("more"), await pg.url())
    table = more.partitioned("locations", by="recorded_at", every="day", ahead=ahead)
    async with more:
        running = asyncio.create_task(asyncio.to_thread(stalled.run))
        made = len(await table.ensure())
        stalled.stop()
        await running
    return usual, stalled, made


async def measure(rows: int, rounds: int, ahead: int) -> Found:
    """Everything, on a server of its own."""
    with Cluster(*QUICK, *_SETTINGS) as cluster:
        async with Postgres(Faena("bench"), cluster.create("bench")) as pg:
            await _prepare(pg, rows)
            plain = await _time(pg, "plain", rounds)
            partitioned = await _time(pg, "locations", rounds)
            async with pg.autocommit() as connection:
                await connection.execute("CREATE INDEX ON plain (organization_id, recorded_at)")
            indexed = await _time(pg, "plain", rounds)
            usual, stalled, made = await _ingest(pg, ahead)
    return Found(
        rows=rows,
        plain=plain,
        indexed=indexed,
        partitioned=partitioned,
        stall_ms=stalled.longest_ms,
        usual_ms=usual.longest_ms,
        inserts=stalled.inserts,
        created=made,
    )


def _show(found: Found) -> None:
    console = Console()
    table = Table(title=f"one tenant's day of {found.rows:,} pings in {DAYS} days")
    for head in ("table", "first ms", "next ms", "blocks", "plan"):
        table.add_column(head, justify="left" if head in {"table", "plan"} else "right")
    cases = {
        "plain, index on tenant": found.plain,
        "plain, index on tenant and time": found.indexed,
        "partitioned": found.partitioned,
    }
    for name, one in cases.items():
        table.add_row(
            name, f"{one.cold_ms:.2f}", f"{one.warm_ms:.2f}", f"{one.blocks:,}", "\n".join(one.plan)
        )
    console.print(table)
    same = found.indexed.warm_ms / found.partitioned.warm_ms
    console.print(
        f"ratio {found.ratio:.1f}, goal {GOAL_RATIO:g}; to the plain table with the same index "
        f"{same:.1f}"
    )
    console.print(
        f"longest of {found.inserts:,} inserts while {found.created} partitions were created: "
        f"{found.stall_ms:.1f} ms, goal {GOAL_STALL_MS:g} ms; without: {found.usual_ms:.1f} ms"
    )


def main(given: Sequence[str]) -> int:
    """Exit code 1 if a goal is missed."""
    parser = argparse.ArgumentParser(prog="./dev bench partitions", description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--ahead", type=int, default=365, help="partitions created during ingest")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(given)
    found = asyncio.run(measure(options.rows, options.rounds, options.ahead))
    if options.json:
        told = {"machine": machine(), **found._asdict(), "ratio": found.ratio}
        sys.stdout.write(json.dumps(told, default=lambda one: one._asdict()) + "\n")
    else:
        _show(found)
    return 0 if found.ratio >= GOAL_RATIO and found.stall_ms <= GOAL_STALL_MS else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
