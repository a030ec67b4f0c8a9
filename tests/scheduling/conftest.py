"""The app with a clock that tests move, from a Sunday on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from faena import Faena
from faena.testing import Harness, harness
from tests._support.valkey import Server

START = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
async def h(app: Faena, valkey: Server) -> AsyncIterator[Harness]:
    async with harness(app, url=valkey.url, start=START) as tested:
        yield tested


async def look(app: Faena) -> int | None:
    """Fire what is due, as a worker does; returns when something is due next."""
    return await (await app.schedules.scheduler(list(app.queues))).run_once()


async def ids(h: Harness) -> list[str]:
    return [job.id for job in await h.jobs()]
