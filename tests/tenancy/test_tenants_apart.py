"""What a handler in a process of its own says about its tenant reaches the server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from faena import Discard, Faena, RateLimited, Snooze
from tests._support.eventually import eventually
from tests._support.valkey import Server

app = Faena("tenants-apart")
calls = app.queue("calls", fair=True, timeout="60s")


@calls.task(run="process")
def call(word: str) -> None:
    endings = {
        "limit": RateLimited("1h", scope="tenant"),
        "snooze": Snooze("1h"),
        "discard": Discard("no use"),
    }
    raise endings[word]


@pytest.fixture
async def _worker(valkey: Server, namespace: str, short: Path) -> AsyncIterator[None]:
    with app.override(url=valkey.url, namespace=namespace):
        working = asyncio.create_task(app.run_worker(grace="0s"))
        yield
        working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await working
        await calls.obliterate(force=True)
        await app.close()


@pytest.mark.usefixtures("_worker")
async def test_a_process_chooses_its_ending_as_any_handler_does() -> None:
    limited = await call.enqueue("limit", tenant="acme")
    snoozed = await call.enqueue("snooze", tenant="zen")
    discarded = await call.enqueue("discard", tenant="zen")

    async def is_over() -> bool:
        states = [await one.handle.state() for one in (snoozed, discarded)]
        return states == ["delayed", "dead"] and (await calls.tenant("acme").view()).is_held

    await eventually(is_over)
    view = await calls.tenant("acme").view()
    assert (view.reason, view.live, view.running) == ("rate_limited", 1, 0)
    job = await limited.handle.view()
    assert job is not None
    assert (job.state, job.attempts_made, job.errors) == ("ready", 0, ())
    assert not (await calls.tenant("zen").view()).is_held
