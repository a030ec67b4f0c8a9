"""A conversion beside writers, killed before any of its statements: no row is lost or doubled."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from faena.pg import Postgres
from tests._support import killed_statement
from tests._support.eventually import PATIENCE_S
from tests._support.forked import Forked
from tests._support.search import IS_FULL
from tests._support.visit_writers import TABLE, Writers

ROWS = 4000
FEW = 300
TWIN, BEFORE = "visits_partitioned", "visits_before_partitions"
BESIDE = {
    "preparing": None,
    "copying": None,
    "copied": TWIN,
    "swapped": BEFORE,
    "finished": None,
    "cancelling": None,
}
"""The table that must have the same rows at each step."""
ENDS = {"convert": "swapped", "convert_back": "copied", "convert_all": "finished", "cancel": None}
"""The step at which each plan ends."""
PARTS = 2
STRIDE = PARTS if IS_FULL else 150
NOTHING = f"""
    DROP TABLE IF EXISTS visits, {TWIN}, {BEFORE};
    DROP FUNCTION IF EXISTS faena.public_visits_forward(), faena.public_visits_backward();
    TRUNCATE faena.conversions;
"""


async def rows_of(pg: Postgres, table: str) -> dict[int, int]:
    async with pg.transaction() as connection:
        found = await connection.execute(f"SELECT id, version FROM {table}".encode())
        rows = await found.fetchall()
    assert len(rows) == len(dict(rows)), "no row may be doubled"
    return dict(rows)


async def check_equal(pg: Postgres, table: str) -> None:
    async with pg.transaction() as connection:
        pair = f"SELECT * FROM visits EXCEPT ALL SELECT * FROM {table}"
        assert await (await connection.execute(pair.encode())).fetchall() == []


async def make(pg: Postgres, rows: int) -> None:
    async with pg.transaction() as connection:
        await connection.execute(f"{NOTHING}{TABLE.format(rows=rows)}".encode())


async def run(pg: Postgres, plan: str, fatal: int, log: Path) -> int:
    """One process, beside whoever writes; how it ended."""
    process = Forked(killed_statement.run, await pg.url(), plan, fatal, log=log)
    ended = await asyncio.to_thread(process.wait, PATIENCE_S)
    assert ended in {0, -9}, await asyncio.to_thread(log.read_text)
    return ended


async def step_of(pg: Postgres) -> str | None:
    async with pg.transaction() as connection:
        found = await connection.execute("SELECT step FROM faena.conversions")
        row = await found.fetchone()
    return None if row is None else row[0]


async def check(pg: Postgres, writers: Writers) -> str | None:
    """What programs see is what they have written, and so is what is kept equal; the step."""
    step = await step_of(pg)
    assert await rows_of(pg, "visits") == writers.rows
    other = None if step is None else BESIDE[step]
    if other is not None:
        assert await rows_of(pg, other) == writers.rows
        await check_equal(pg, other)
    return step


@pytest.mark.parametrize("plan", ["convert", "convert_back"])
@pytest.mark.parametrize("part", range(3))
async def test_rows_written_during_a_conversion_that_is_killed_all_the_time_are_in_both_tables(
    pg: Postgres, tmp_path: Path, plan: str, part: int
) -> None:
    await make(pg, ROWS)
    writers = Writers(await pg.url(), part)
    async with writers.at_work():
        fatal, ended = 4 + part, -9
        while ended != 0:
            ended = await run(pg, plan, fatal, tmp_path / "log")
            fatal += 7 if fatal < 100 else 40
    assert await check(pg, writers) == ENDS[plan]


@pytest.mark.parametrize("plan", ["convert_all", "cancel"])
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.timeout(3600 if IS_FULL else 120)
async def test_a_conversion_that_is_killed_before_any_of_its_statements_is_ended_by_the_next(
    pg: Postgres, tmp_path: Path, plan: str, part: int
) -> None:
    """Each time a new table, and one kill: it comes before each statement, also in the swap."""
    fatal, ended, log = 1 + part * STRIDE // PARTS, -9, tmp_path / "log"
    while ended != 0:
        await make(pg, FEW)
        writers = Writers(await pg.url(), fatal, rows=FEW)
        async with writers.at_work():
            ended = await run(pg, plan, fatal, log)
        await check(pg, writers)
        async with writers.at_work():
            assert await run(pg, plan, 0, log) == 0
        assert await check(pg, writers) == ENDS[plan]
        fatal += STRIDE
    assert fatal > 100


async def test_two_processes_convert_one_table_together(pg: Postgres) -> None:
    await make(pg, ROWS)
    conversions = [pg.convert("visits", by="at", every="day", ahead=1) for _ in range(2)]
    await asyncio.gather(*(one.run() for one in conversions))
    await conversions[0].swap()
    assert await rows_of(pg, "visits") == dict.fromkeys(range(1, ROWS + 1), 0)
