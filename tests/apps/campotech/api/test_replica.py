"""Figures are read on the replica; what people change is read where it was written."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from apps.campotech.api.app import create
from apps.campotech.database import migrate
from apps.campotech.messages.dispatched import OfOrganization
from apps.campotech.system import System
from apps.sandbox.sandbox import Sandbox
from apps.sandbox.stand_in import serving

from faena.testing import harness
from tests._support.eventually import eventually
from tests._support.postgres import QUICK, Cluster, standby
from tests.apps.campotech.business import Business

QUIET = ("autovacuum = off", "checkpoint_timeout = 1h")


@pytest.fixture
def pair() -> Iterator[tuple[Cluster, Cluster]]:
    """A server of its own, and a replica that follows it."""
    with Cluster(*QUICK, *QUIET) as primary, standby(primary) as follower:
        yield primary, follower


@pytest.fixture
async def replicated(
    system: System, pair: tuple[Cluster, Cluster], tmp_path: Path
) -> AsyncIterator[System]:
    """A CampoTech with a replica."""
    primary, follower = pair
    given = dataclasses.replace(
        system.settings,
        database_url=primary.create("campo"),
        replica_url=follower.url("campo"),
        directory=tmp_path / "replicated",
    )
    async with System(given) as made:
        await migrate.upgrade(made.pg)
        yield made


def watched(system: System) -> list[bool]:
    """Whether each read that may go to the replica went there."""
    seen, reading = list[bool](), system.pg.reading

    @asynccontextmanager
    async def noted(**options: Any) -> AsyncIterator[Any]:
        async with reading(**options) as connection:
            seen.append(connection.is_replica)
            yield connection

    system.pg.reading = noted  # pyright: ignore[reportAttributeAccessIssue] - for this test
    return seen


async def test_figures_come_from_the_replica_when_it_is_fresh(
    replicated: System, sandbox: Sandbox
) -> None:
    business, seen = await Business.make(replicated, sandbox), watched(replicated)
    await business.invoice()
    headers = {"authorization": f"Bearer {replicated.settings.admin_token}"}
    async with (
        harness(replicated.app) as harnessed,
        serving(create(replicated)) as url,
        httpx.AsyncClient(base_url=url, headers=headers, trust_env=False) as admin,
    ):

        async def is_read_there() -> bool:
            found = (await admin.get("/api/admin/afip-status")).json()
            return seen[-1] and found["invoices"]["pending"] == 1

        await eventually(is_read_there)
        seen.clear()
        asked = OfOrganization(organization_id=str(business.id))
        await replicated.figures.calculate.enqueue(asked, tenant=str(business.id))
        (await harnessed.drain(schedules=False)).check()
        assert len(seen) == 1
    stored = await business.rows("SELECT organization_id FROM campotech.organization_figures")
    assert stored == [(business.id,)]
