"""Health is looked at once, however many ask, and is told whatever hangs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace

import httpx
import pytest
from apps.campotech.api.vitals import Doctor
from apps.campotech.system import System

from faena.testing import Harness, harness


async def test_those_who_ask_at_once_get_the_same_look(
    harnessed: Harness, api: httpx.AsyncClient
) -> None:
    answers = await asyncio.gather(*(api.get("/api/health") for _ in range(20)))
    assert {one.status_code for one in answers} == {200}
    looks = {one.json()["timestamp"] for one in answers}
    assert len(looks) < len(answers)


async def test_a_busy_pool_is_no_database_that_does_not_answer(
    system: System, harnessed: Harness
) -> None:
    async with AsyncExitStack() as all_of_them:
        for _ in range(system.pg.pool_size):
            await all_of_them.enter_async_context(system.pg.transaction("busy"))
        assert (await Doctor(system).ask()).has_database


@pytest.fixture
async def silent() -> AsyncIterator[str]:
    """The address of a server that takes connections and says nothing."""
    gone = asyncio.Event()

    async def hold(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await gone.wait()
        writer.close()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    yield f"postgresql://nobody@{host}:{port}/nothing"
    gone.set()
    server.close()
    await server.wait_closed()


async def test_a_database_that_hangs_is_told_as_offline(system: System, silent: str) -> None:
    hanging = System(replace(system.settings, database_url=silent))
    async with hanging, harness(hanging.app):
        seen = await Doctor(hanging).ask()
    assert (seen.overall, seen.has_database) == ("offline", False)
    assert seen.features is not None
