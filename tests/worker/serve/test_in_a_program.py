"""Workers that a program runs in its own event loop can answer probes, from a thread."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from faena import Faena
from faena.errors import ConfigError
from tests._support.eventually import eventually
from tests._support.probe import answers, get
from tests._support.valkey import free_port
from tests._support.working import running


async def test_a_program_that_runs_its_worker_itself_can_serve(app: Faena) -> None:
    app.queue("mail")
    port = free_port()
    async with running(app, serve=str(port)):
        await eventually(lambda: answers(port, "/ready", 200))
        assert (await get(port, "/health")).document["status"] == "ok"
        assert (await get(port, "/metrics")).status == 200
        with pytest.raises(ConfigError, match="another process has the port"):
            await app.run_worker(serve=str(port))
    assert (await get(port, "/ready")).status == 0
    assert not [one for one in threading.enumerate() if one.name == "faena-serve"]


async def test_a_loop_that_the_program_blocks_is_told_from_the_thread(app: Faena) -> None:
    app.queue("mail")
    port = free_port()

    def probe() -> None:
        asyncio.run(eventually(lambda: answers(port, "/health", 503)))

    async with running(app, serve=str(port)):
        await eventually(lambda: answers(port, "/health", 200))
        probing = threading.Thread(target=probe)
        probing.start()
        while probing.is_alive():
            time.sleep(0.05)  # noqa: ASYNC251 - that is the point
        await eventually(lambda: answers(port, "/health", 200))


async def test_an_address_that_cannot_be_is_refused_before_anything_runs(app: Faena) -> None:
    with pytest.raises(ConfigError, match="serve must be a port, host:port or 'off'"):
        await app.run_worker(serve="nowhere:")
