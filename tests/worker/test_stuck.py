"""Handlers that stand still: a blocked event loop keeps its leases and is told of, with the place
where it is blocked; whoever never ends loses its lease. Only a worker that was asked to takes its
process with it (`test_poison.py` shows that one)."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from faena import Faena, Retry
from faena.engine import Address, Engine, Wire
from faena.worker.fetch import fetcher
from faena.worker.heartbeat import Heartbeat
from faena.worker.leases import Leases
from tests._support.eventually import eventually
from tests._support.rig import LEASE, T0, Rig
from tests._support.valkey import Server

PATIENCE_S = 30.0


async def test_a_worker_inside_a_program_of_its_own_only_says_that_it_is_stuck(
    valkey: Server, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = Faena("shop", valkey.url, namespace=namespace)
    queue = app.queue("mail", lease="2s", timeout="100ms")

    @queue.task
    async def block() -> str:
        threading.Event().wait(4.0)
        return "still here"

    async with app:
        worker = asyncio.create_task(app.run_worker(stuck="100ms", grace="1s"))
        receipt = await block.enqueue()
        await receipt.handle.result(timeout="60s")
        worker.cancel()
        await asyncio.wait({worker})
        await queue.obliterate(force=True)
    (told,) = {one.getMessage()[:35] for one in caplog.records if one.levelname == "CRITICAL"}
    assert told.startswith("the event loop has been blocked for")
    assert "test_stuck.py" in caplog.text or "threading.py" in caplog.text


async def test_leases_are_renewed_while_the_event_loop_stands_still(
    rig: Rig, valkey: Server
) -> None:
    def connect() -> Engine:
        its_own = Rig(Wire(Address.parse(valkey.url)), rig.engine.namespace)
        its_own.clock.now = rig.clock.now
        return its_own.engine

    def await_renewal() -> float:
        """Blocks the event loop."""
        until = time.monotonic() + PATIENCE_S
        with valkey.client() as client:
            running = f"{rig.engine.namespace}:{{q}}:running"
            while client.zscore(running, "a") == T0 + LEASE and time.monotonic() < until:
                threading.Event().wait(0.005)
            return client.zscore(running, "a")

    await rig.add("a")
    leases = Leases()
    leases.take("q", await rig.claim(), [("a", time.monotonic() + 3600)])
    later = rig.clock.go(10)
    heartbeat = Heartbeat(
        connect,
        leases,
        every_s=0.05,
        on_stop=lambda *_: None,
        loop=asyncio.get_running_loop(),
        patience_s=lambda: 3600.0,
        on_stuck=lambda _: None,
    )
    heartbeat.start()
    try:
        assert await_renewal() == later + LEASE
    finally:
        await asyncio.to_thread(heartbeat.stop)


@pytest.mark.parametrize("is_batch", [False, True], ids=["alone", "in a batch"])
async def test_the_lease_of_a_handler_that_never_ends_is_not_renewed_for_ever(
    valkey: Server, namespace: str, monkeypatch: pytest.MonkeyPatch, *, is_batch: bool
) -> None:
    monkeypatch.setattr(fetcher, "_GRACE_S", 0.0)
    app = Faena("shop", valkey.url, namespace=namespace)
    queue = app.queue("mail", timeout="2s", retry=Retry.never())
    renewed: list[object] = []

    async def block(_: Any) -> None:
        until = time.monotonic() + PATIENCE_S
        while leases.to_renew()["mail"] and time.monotonic() < until:
            threading.Event().wait(0.001)
        renewed.extend((len(leases), leases.to_renew()))

    task: Any = (queue.batch(2, "0s") if is_batch else queue.task)(block)
    async with app:
        worker = await app.worker()
        leases = worker._leases
        running = asyncio.create_task(worker.run())
        await task.enqueue(1)
        await eventually(lambda: renewed)
        worker.stop()
        await running
        await queue.obliterate(force=True)
    assert renewed == [1, {"mail": []}]
