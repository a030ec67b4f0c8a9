"""A conversion beside writers, killed before any of its statements: no row is lost or doubled."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import psycopg
import pytest

from faena.pg import Postgres
from tests._support import killed_statement
from tests._support.eventually import PATIENCE_S
from tests._support.forked import Forked

TABLE = """
    CREATE TABLE visits (id int PRIMARY KEY, organization_id text, at timestamptz NOT NULL,
                         version int NOT NULL);
    CREATE INDEX ON visits (at);
    INSERT INTO visits SELECT n, 'o' || n % 5, now() - n * interval '1 minute', 0
      FROM generate_series(1, 4000) n;
"""


class Writers:
    """Programs that insert, update, move and delete rows, and remember what was committed."""

    def __init__(self, url: str, seed: int) -> None:
        self._url = url
        self._random = random.Random(seed)
        self.rows: dict[int, int] = dict.fromkeys(range(1, 4001), 0)
        self.writes = 0
        self._is_over = False

    async def work(self, mine: int, of: int) -> None:
        """Write rows of its own until told to stop; a transaction that is refused is repeated."""
        async with await psycopg.AsyncConnection.connect(self._url, autocommit=True) as connection:
            number = 10_000 * (mine + 1)
            while not self._is_over:
                number += of
                ids = [one for one in self._random.sample(range(1, 4001), 12) if one % of == mine]
                async with connection.transaction():
                    await self._write(connection, number, ids)
                self.rows[number] = 0
                for place, one in enumerate(ids):
                    if one not in self.rows:
                        continue
                    if place % 3 == 2:
                        del self.rows[one]
                    else:
                        self.rows[one] += 1
                self.writes += 1

    async def _write(self, connection: Any, number: int, ids: list[int]) -> None:
        await connection.execute("INSERT INTO visits VALUES (%s, 'new', now(), 0)", [number])
        for place, one in enumerate(ids):
            if place % 3 == 0:
                words = "UPDATE visits SET version = version + 1 WHERE id = %s"
            elif place % 3 == 1:
                words = (
                    "UPDATE visits SET version = version + 1,"
                    " at = now() - id %% 3 * interval '1 day' WHERE id = %s"
                )
            else:
                words = "DELETE FROM visits WHERE id = %s"
            await connection.execute(words, [one])

    def stop(self) -> None:
        self._is_over = True


async def rows_of(pg: Postgres, table: str) -> dict[int, int]:
    async with pg.transaction() as connection:
        found = await connection.execute(f"SELECT id, version FROM {table}".encode())
        rows = await found.fetchall()
    assert len(rows) == len(dict(rows)), "no row may be doubled"
    return dict(rows)


@pytest.mark.parametrize("plan", ["convert", "convert_back"])
@pytest.mark.parametrize("part", range(3))
async def test_rows_written_during_a_conversion_that_is_killed_all_the_time_are_in_both_tables(
    pg: Postgres, tmp_path: Path, plan: str, part: int
) -> None:
    async with pg.transaction() as connection:
        await connection.execute(TABLE.encode())
    writers = Writers(await pg.url(), part)
    writing = [asyncio.create_task(writers.work(mine, 2)) for mine in range(2)]
    try:
        fatal, ended = 4 + part, None
        while ended != 0:
            process = Forked(
                killed_statement.run, await pg.url(), plan, fatal, log=tmp_path / "log"
            )
            ended = await asyncio.to_thread(process.wait, PATIENCE_S)
            assert ended in {0, -9}, (tmp_path / "log").read_text()
            fatal += 7 if fatal < 100 else 40
        before = writers.writes
        while writers.writes < before + 5:
            await asyncio.sleep(0)
            assert not any(one.done() for one in writing)
    finally:
        writers.stop()
        await asyncio.gather(*writing)
    other = "visits_before_partitions" if plan == "convert" else "visits_partitioned"
    assert await rows_of(pg, "visits") == writers.rows
    assert await rows_of(pg, other) == writers.rows
    async with pg.transaction() as connection:
        pair = f"SELECT * FROM visits EXCEPT ALL SELECT * FROM {other}"
        assert await (await connection.execute(pair.encode())).fetchall() == []


async def test_two_processes_convert_one_table_together(pg: Postgres) -> None:
    async with pg.transaction() as connection:
        await connection.execute(TABLE.encode())
    conversions = [pg.convert("visits", by="at", every="day", ahead=1) for _ in range(2)]
    await asyncio.gather(*(one.run() for one in conversions))
    await conversions[0].swap()
    assert await rows_of(pg, "visits") == dict.fromkeys(range(1, 4001), 0)
