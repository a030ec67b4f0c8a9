"""An archiver that is killed or frozen at any step: each row is in the table or in an archive."""

from __future__ import annotations

import asyncio
import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from faena import Faena
from faena.pg import Postgres
from faena.pg.archive.catalogue import Wanted, read_entries
from faena.pg.archive.content import read_lines
from faena.pg.archive.store import open_store
from tests._support import archive_process
from tests._support.archive_process import NOW, PLANS, retain
from tests._support.eventually import PATIENCE_S, eventually
from tests._support.forked import Forked
from tests._support.search import IS_FULL

ROWS = 30
TABLE = """
    DROP TABLE IF EXISTS visits, visits_2025w08, visits_2025w09, stats;
    TRUNCATE faena.archives, faena.archive_runs, faena.retentions;
    CREATE TABLE stats (org text PRIMARY KEY, n bigint, v bigint);
    CREATE TABLE visits (id int, org text, at timestamptz NOT NULL, v int, PRIMARY KEY (id, at))
"""
PARTITIONS = """
    PARTITION BY RANGE (at);
    CREATE TABLE visits_2025w08 PARTITION OF visits
      FOR VALUES FROM ('2025-02-17 00:00+00') TO ('2025-02-24 00:00+00');
    CREATE TABLE visits_2025w09 PARTITION OF visits
      FOR VALUES FROM ('2025-02-24 00:00+00') TO ('2025-03-03 00:00+00')
"""
FILL = f"""
    INSERT INTO visits SELECT n, 'o' || n % 3, '2025-02-26 00:00+00'::timestamptz
      - n * interval '3 hours', n FROM generate_series(1, {ROWS}) n
"""
OLD = ROWS - 16
"""Rows before Monday, 24 February."""


async def prepare(pg: Postgres, plan: str) -> None:
    async with pg.transaction() as connection:
        await connection.execute(
            f"{TABLE}{PARTITIONS if 'partitions' in plan else ''};{FILL}".encode()
        )


async def ids(pg: Postgres, table: str) -> list[int]:
    """Of a table; a partition that is detached counts as well."""
    async with pg.transaction() as connection:
        words = f"SELECT id FROM {table}"
        found = await connection.execute("SELECT to_regclass(%s) IS NOT NULL", [table])
        row = await found.fetchone()
        if not row or not row[0]:
            return []
        return [row[0] for row in await (await connection.execute(words.encode())).fetchall()]


async def in_tables(pg: Postgres, plan: str) -> list[int]:
    if "partitions" not in plan:
        return await ids(pg, "visits")
    return [*await ids(pg, "visits_2025w08"), *await ids(pg, "visits_2025w09")]


async def in_archives(pg: Postgres) -> list[int]:
    async with pg.transaction() as connection:
        entries = await read_entries(connection, Wanted("public.visits"))
    found: list[int] = []
    for one in entries:
        async for lines in read_lines(open_store(one.store), one.key, one.sha256):
            found += [int(json.loads(line)["id"]) for line in lines]
    return found


async def aggregated(pg: Postgres) -> tuple[int, int]:
    async with pg.transaction() as connection:
        found = await connection.execute(
            "SELECT coalesce(sum(n), 0)::int, coalesce(sum(v), 0)::int FROM stats"
        )
        row = await found.fetchone()
    return row or (0, 0)


async def check(pg: Postgres, plan: str) -> None:
    """No row is lost, none is twice; what was aggregated is what has left."""
    here, there = await in_tables(pg, plan), await in_archives(pg)
    counts = Counter([*here, *there])
    assert max(counts.values()) == 1, f"doubled: {counts.most_common(3)}"
    gone = sorted({*range(1, ROWS + 1)} - {*here})
    if "archive" in plan:
        assert gone == sorted(there), "each row is in the table or in an archive"
    if PLANS[plan]:
        assert await aggregated(pg) == (len(gone), sum(gone))


async def check_objects(pg: Postgres, folder: Path) -> None:
    """The store has the objects that count and no others; nothing is left half done."""
    counted = {one.key for one in await pg.archives("visits")}
    found = {one.key async for one in open_store(folder).list("")}
    assert {one for one in found if one.endswith(".zst")} == counted
    assert len(found) == 2 * len(counted)
    assert await pg.archives("visits", states=("writing", "verified")) == []


async def finish(pg: Postgres, plan: str, folder: Path) -> None:
    """Run it to its end, and look at everything."""
    pg.retentions.clear()
    retain(pg, plan, folder)
    (done,) = await pg.archive(at=NOW, lease=SOON)
    assert done.problem is None
    await check(pg, plan)
    assert sorted(await ids(pg, "visits")) == list(range(1, ROWS - OLD + 1))
    await check_objects(pg, folder)
    if "archive" in plan:
        assert len(await in_archives(pg)) == OLD
        checked = await pg.verify_archives("visits")
        assert (checked.problems, checked.unknown) == ((), ())


SOON = "100ms"
"""After so long, a process takes over from another."""
STRIDE = 1 if IS_FULL else 6


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("part", range(2))
@pytest.mark.timeout(300)
async def test_no_row_is_lost_or_doubled_when_the_archiver_is_killed_at_any_step(
    database: str, tmp_path: Path, plan: str, part: int
) -> None:
    async with Postgres(Faena("parent"), database, relay=False) as pg:
        fatal, ended = 1 + part * STRIDE // 2, -9
        while ended != 0:
            await prepare(pg, plan)
            folder = tmp_path / str(fatal)
            process = Forked(
                archive_process.run, database, plan, str(folder), fatal, log=tmp_path / "log"
            )
            ended = await asyncio.to_thread(process.wait, PATIENCE_S)
            assert ended in {0, -9}, (tmp_path / "log").read_text()
            await check(pg, plan)
            await finish(pg, plan, folder)
            fatal += STRIDE
        assert fatal > 20


def is_stopped(process: Any) -> bool:
    status = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return status[0] == "T"


@pytest.mark.parametrize("plan", ["archive", "archive partitions", "delete"])
@pytest.mark.parametrize("share", [0.35, 0.6, 0.75])
@pytest.mark.timeout(120)
async def test_an_archiver_that_wakes_up_after_another_took_over_changes_nothing(
    database: str, tmp_path: Path, plan: str, share: float
) -> None:
    async with Postgres(Faena("parent"), database, relay=False) as pg:
        await prepare(pg, plan)
        taken, last = STEPS[plan]
        fatal = taken + round((last - taken) * share)
        folder, log = tmp_path / "archives", tmp_path / "log"
        process = Forked(
            archive_process.run, database, plan, str(folder), fatal, signal.SIGSTOP, log=log
        )
        await eventually(lambda: is_stopped(process))
        await finish(pg, plan, folder)
        process.send(signal.SIGCONT)
        code = await asyncio.to_thread(process.wait, PATIENCE_S)
        assert code == 1, "it must find out that another has taken over"
        await check(pg, plan)
        await check_objects(pg, folder)
        await finish(pg, plan, folder)


STEPS = {"archive": (17, 68), "archive partitions": (18, 80), "delete": (17, 52)}
"""Which step takes the table, and which is the last."""
