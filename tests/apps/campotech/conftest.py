"""CampoTech for tests: a database for each test, copied from one that is made once."""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import os
import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest
from apps.campotech.database import migrate, tables
from apps.campotech.settings import Settings
from apps.campotech.system import System

from faena import Faena
from faena.pg import Archive, Postgres
from faena.testing import Harness, harness
from tests._support import guard, postgres
from tests._support.postgres import Cluster

TEMPLATE = "campotech"
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """The server of all tests, with a migrated database to copy."""
    cluster = postgres.shared()
    with (guard.begin() / "campotech.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with psycopg.connect(cluster.url()) as connection:
            asked = "SELECT 1 FROM pg_database WHERE datname = %s"
            is_known = connection.execute(asked, [TEMPLATE]).fetchone()
        if not is_known:
            asyncio.run(_make(cluster))
    return cluster


async def _make(cluster: Cluster) -> None:
    app = Faena("template")
    app.queue("scheduler")
    async with Postgres(app, cluster.create(TEMPLATE), relay=False) as pg:
        tables.declare(pg, Archive(), ahead=1)
        await migrate.upgrade(pg)


@pytest.fixture
def database(cluster: Cluster) -> Iterator[str]:
    """The URL of a database with all tables, and no rows."""
    name = f"campotech_{os.getpid()}_{next(_numbers)}"
    yield cluster.create(name, TEMPLATE)
    cluster.drop(name)


@pytest.fixture
async def system(database: str, tmp_path: Path) -> AsyncIterator[System]:
    """A CampoTech with a database of its own; its broker is that of `harnessed`."""
    settings = Settings(
        database_url=database, directory=tmp_path / ".faena", secrets=(secrets.token_hex(32),)
    )
    made = System(settings)
    async with made.pg:
        yield made


@pytest.fixture
async def harnessed(system: System) -> AsyncIterator[Harness]:
    """The broker of `system`, which runs jobs when it is told to."""
    async with harness(system.app) as made:
        yield made
