"""Programs that write to one table all the time, and remember what they have committed."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

import psycopg

TABLE = """
    CREATE TABLE visits (id int PRIMARY KEY, organization_id text, at timestamptz NOT NULL,
                         version int NOT NULL);
    CREATE INDEX ON visits (at);
    INSERT INTO visits SELECT n, 'o' || n % 5, now() - n * interval '1 minute', 0
      FROM generate_series(1, {rows}) n;
"""
_AT_ONCE = 2


class Writers:
    """Programs that insert, update, move and delete rows."""

    def __init__(self, url: str, seed: int, *, rows: int = 4000) -> None:
        self._url = url
        self._random = random.Random(seed)
        self._numbers = itertools.count(10_000)
        self._old = range(1, rows + 1)
        self.rows: dict[int, int] = dict.fromkeys(self._old, 0)
        """The version of each row that is there."""
        self.writes = 0
        self._is_over = False

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[Self]:
        """They write for the length of the block, and at least some transactions."""
        self._is_over = False
        tasks = [asyncio.create_task(self._work(mine)) for mine in range(_AT_ONCE)]
        try:
            yield self
            before = self.writes
            while self.writes < before + 5:
                await asyncio.sleep(0)
                assert not any(one.done() for one in tasks)
        finally:
            self._is_over = True
            await asyncio.gather(*tasks)

    async def _work(self, mine: int) -> None:
        """Write rows of its own until told to stop."""
        async with await psycopg.AsyncConnection.connect(self._url, autocommit=True) as connection:
            while not self._is_over:
                number = next(self._numbers)
                some = self._random.sample(self._old, 12)
                ids = [one for one in some if one % _AT_ONCE == mine]
                async with connection.transaction():
                    await self._write(connection, number, ids)
                self._note(number, ids)

    def _note(self, number: int, ids: list[int]) -> None:
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
