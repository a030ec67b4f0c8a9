"""CampoTech for tests: a database for each test, copied from one that is made once."""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import os
import secrets
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from apps.campotech.database import migrate, tables
from apps.campotech.settings import Settings
from apps.campotech.system import System
from apps.sandbox.afip import Afip, Authority, Credential, Terms
from apps.sandbox.sandbox import Sandbox

from faena import Faena
from faena.pg import Archive, Postgres
from faena.testing import Harness, harness
from tests._support import guard, postgres
from tests._support.postgres import Cluster
from tests.apps.campotech.business import PLATFORM, Business

TEMPLATE = "campotech"
YEAR = timedelta(days=365)
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


@pytest.fixture(scope="session")
def authority() -> Authority:
    """Who certifies computers: its key takes long to make."""
    return Authority(datetime.now(UTC))


@pytest.fixture(scope="session")
def platform(authority: Authority) -> Credential:
    """What CampoTech itself signs with, for organisations that have delegated to it."""
    now = datetime.now(UTC)
    return authority.issue(int(PLATFORM), "campotech", now - timedelta(days=1), now + YEAR)


@pytest.fixture
async def sandbox(authority: Authority) -> AsyncIterator[Sandbox]:
    """The outside world, with `url`."""
    made = Sandbox(afip=Afip(authority=authority, terms=Terms(guard_window=timedelta(0))))
    async with made.serving() as made.url:
        yield made


@pytest.fixture
def environ(
    database: str, tmp_path: Path, sandbox: Sandbox, platform: Credential
) -> dict[str, str]:
    """That of a CampoTech with a database of its own, in the world of the sandbox."""
    sandbox.afip.registry.register(int(PLATFORM), ()).services.add("wsfe")
    return {
        **sandbox.environment(sandbox.url),
        "CAMPOTECH_DATABASE_URL": database,
        "CAMPOTECH_DIRECTORY": str(tmp_path / ".faena"),
        "CAMPOTECH_SECRETS": secrets.token_hex(32),
        "CAMPOTECH_ADMIN_TOKEN": secrets.token_hex(16),
        "STORAGE_URL": (tmp_path / "files").as_uri(),
        "AFIP_CERTIFICATE": platform.certificate_pem.decode(),
        "AFIP_KEY": platform.key_pem.decode(),
    }


@pytest.fixture
async def system(environ: dict[str, str]) -> AsyncIterator[System]:
    """A CampoTech with a database of its own; its broker is that of `harnessed`."""
    async with System(Settings.from_env(environ)) as made:
        yield made


@pytest.fixture
async def harnessed(system: System) -> AsyncIterator[Harness]:
    """The broker of `system`, which runs jobs when it is told to."""
    async with harness(system.app) as made:
        yield made


@pytest.fixture
async def business(system: System, sandbox: Sandbox) -> Business:
    """An organisation with a customer, known to the tax office and to WhatsApp."""
    return await Business.make(system, sandbox)
