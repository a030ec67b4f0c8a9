"""The API of a CampoTech, called as over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from apps.campotech.api.app import create
from apps.campotech.system import System
from apps.sandbox.stand_in import serving

from faena.testing import Harness
from tests._support.eventually import PATIENCE_S
from tests.apps.campotech.business import Business


@pytest.fixture
async def url(system: System, harnessed: Harness) -> AsyncIterator[str]:
    """Where it listens: a real server on loopback."""
    await system.pg.outbox.publish()
    async with serving(create(system), has_websockets=True) as url:
        yield url


@pytest.fixture
async def api(url: str, business: Business) -> AsyncIterator[httpx.AsyncClient]:
    """A client with the token of `business`."""
    headers = {"authorization": f"Bearer {business.token}"}
    async with httpx.AsyncClient(
        base_url=url, headers=headers, timeout=PATIENCE_S, trust_env=False
    ) as client:
        yield client
