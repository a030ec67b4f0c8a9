"""Running a worker inside a program of one's own."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from faena import Faena, Receipt, State
from faena.engine import Engine
from faena.worker import worker
from tests._support.valkey import Server


async def test_a_cancelled_worker_hands_its_running_jobs_back_and_spends_no_attempt() -> None:
    with Server("appendonly no", unix=True) as server:
        app = Faena("shop", server.url)
        started = asyncio.Event()

        @app.queue("q").task
        async def wait(payload: dict[str, Any]) -> None:
            started.set()
            await asyncio.Event().wait()

        async with app:
            receipt = await wait.enqueue({})
            working = asyncio.create_task(app.run_worker())
            await started.wait()
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working
            view = await receipt.handle.view()
    assert view is not None
    assert (view.state, view.attempts_made, view.losses) == (State.READY, 0, 0)


async def test_a_worker_with_a_rate_goes_on_as_soon_as_that_allows(
    app: Faena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_SWEEP_S", 3600.0)

    @app.queue("q").task
    async def nothing() -> None: ...

    receipts = await nothing.enqueue_many([nothing.draft()] * 3)
    working = asyncio.create_task(app.run_worker(rate="1/200ms"))
    for receipt in receipts:
        await receipt.handle.result(timeout="60s")
    working.cancel()
    await asyncio.wait([working])


async def test_a_worker_until_empty_waits_for_work_that_passes_between_queues(
    app: Faena, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`a` is empty whenever it is looked at, and so is `b`: meanwhile the work goes to and fro."""
    steps = 4
    looked = {shard: [asyncio.Event() for _ in range(steps)] for shard in ("a", "b")}
    sent = {shard: list[Receipt]() for shard in ("a", "b")}
    a, b = app.queue("a"), app.queue("b")

    @a.task
    async def back(step: int) -> None:
        await looked["b"][step].wait()
        if step + 1 < steps:
            sent["b"].append(await forth.enqueue(step + 1))

    @b.task
    async def forth(step: int) -> None:
        await looked["a"][step].wait()
        sent["a"].append(await back.enqueue(step))

    sent["b"].append(await forth.enqueue(0))
    real, looks = Engine.overview, {"a": 0, "b": 0}

    async def overview(engine: Engine, shard: str) -> Any:
        found, step, other = await real(engine, shard), looks[shard], "ba"[shard == "b"]
        if step < steps and len(sent[other]) > step:  # not while it still waits for the other
            looks[shard] += 1
            looked[shard][step].set()
            await sent[other][step].handle.result(timeout="60s")
        return found

    monkeypatch.setattr(Engine, "overview", overview)
    await app.run_worker(until_empty=True)
    assert len(sent["a"]) == steps
