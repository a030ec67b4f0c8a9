"""Apps with upstreams, whose keys are removed afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from faena import Faena
from faena.engine.calls.resilience import SHARD


@pytest.fixture
async def shop(app: Faena) -> AsyncIterator[Faena]:
    """An app; what is known of its upstreams is removed at the end."""
    yield app
    await asyncio.to_thread(app.sync.close)
    runtime = await app.runtime()
    await runtime.gate.flush()
    for name in (
        *("upstreams", "troubled", "features", "events", "forgotten"),
        *("reserved", "lots", "lot_ends"),
    ):
        await runtime.engine.command("DEL", SHARD, name)
