"""A process that archives, and ends or freezes itself before its n-th step.

A step is a statement to PostgreSQL or a call of the object store.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

from faena import Faena
from faena.pg import Archive, Postgres
from faena.pg.archive.directory import DirectoryStore

NOW = datetime(2025, 3, 1, tzinfo=UTC)
LEASE = "4s"
"""Long enough for no heartbeat in between: its steps would come at any time."""
COUNTED = """
    INSERT INTO stats SELECT org, count(*), sum(v) FROM faena_expired GROUP BY 1
    ON CONFLICT (org) DO UPDATE SET n = stats.n + excluded.n, v = stats.v + excluded.v
"""
PLANS: dict[str, dict[str, Any]] = {
    "archive": {},
    "archive partitions": {"aggregate": COUNTED},
    "delete": {"then": "delete", "aggregate": COUNTED},
    "delete partitions": {"then": "delete", "aggregate": COUNTED},
}


def retain(pg: Postgres, plan: str, folder: Path) -> None:
    """Rows of ten days, of which five leave, in slices of a few."""
    archive = Archive(to=folder, rows=9)
    options = {"by": "at", "keep": "2d", "tenant": "org", "then": archive, "every": "week"}
    pg.retain("visits", **{**options, **PLANS[plan]})


def run(url: str, plan: str, folder: str, fatal: int, how: int = signal.SIGKILL) -> int:
    """Archive up to a step; returns 1 if it was superseded."""
    seen = 0

    def step() -> None:
        nonlocal seen
        seen += 1
        if seen == fatal:
            os.kill(os.getpid(), how)

    _watched(psycopg.AsyncConnection, "execute", step)
    for name in ("put", "delete"):
        _watched(DirectoryStore, name, step)

    async def work() -> int:
        async with Postgres(Faena("archivist"), url) as pg:
            retain(pg, plan, Path(folder))
            (done,) = await pg.archive(at=NOW, lease=LEASE)
            if done.problem is not None:
                sys.stdout.write(done.problem)
            return 0 if done.problem is None else 1

    return asyncio.run(work())


def _watched(owner: Any, name: str, step: Callable[[], None]) -> None:
    original = getattr(owner, name)

    async def call(*args: Any, **options: Any) -> Any:
        step()
        return await original(*args, **options)

    setattr(owner, name, call)
