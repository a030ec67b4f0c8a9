"""An event loop that stands still is told, with the place where it does; only a worker that was
asked to takes its process with it (`test_poison.py` shows that one)."""

from __future__ import annotations

import asyncio
import threading

import pytest

from faena import Faena
from tests._support.valkey import Server


async def test_a_worker_inside_a_program_of_its_own_only_says_that_it_is_stuck(
    valkey: Server, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = Faena("shop", valkey.url, namespace=namespace)
    queue = app.queue("mail", lease="300ms", timeout="100ms")

    @queue.task
    async def block() -> str:
        threading.Event().wait(1.0)
        return "still here"

    async with app:
        worker = asyncio.create_task(app.run_worker(stuck_s=0.1, grace_s=1.0))
        receipt = await block.enqueue()
        await receipt.handle.result(timeout="10s")
        worker.cancel()
        await asyncio.wait({worker})
        await queue.obliterate(force=True)
    (told,) = {one.getMessage()[:31] for one in caplog.records if one.levelname == "CRITICAL"}
    assert told.startswith("the event loop stands still for")
    assert "test_stuck.py" in caplog.text or "threading.py" in caplog.text
