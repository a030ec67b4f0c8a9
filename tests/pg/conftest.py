"""PostgreSQL for tests: a shared server, and a migrated database for each test."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator, Iterator

import pytest

from faena import Faena
from faena.pg import Postgres
from tests._support import postgres
from tests._support.postgres import Cluster

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """The server shared by all tests; none may stop it or change its settings."""
    return postgres.shared()


@pytest.fixture
def database(cluster: Cluster) -> Iterator[str]:
    """The URL of an empty database with all migrations."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    yield cluster.create(name, "migrated")
    cluster.drop(name)


@pytest.fixture
def bare_database(cluster: Cluster) -> Iterator[str]:
    """The URL of a database without any migration."""
    name = f"bare_{os.getpid()}_{next(_numbers)}"
    yield cluster.create(name)
    cluster.drop(name)


@pytest.fixture
async def pg(app: Faena, database: str) -> AsyncIterator[Postgres]:
    """The PostgreSQL of an app, with a database of its own."""
    async with Postgres(app, database) as pg:
        yield pg
