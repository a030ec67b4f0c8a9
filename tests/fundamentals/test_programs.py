"""Faena in the program around it: typed payloads, middleware, code without an event loop."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from faena import Faena, Job, Middleware
from faena.errors import PayloadError, StoreRejected
from faena.middleware import Execute
from faena.testing import Harness, harness, run_inline, sync_harness
from tests._support.valkey import Server


@dataclass
class Invoice:
    id: int
    lines: list[str]


async def test_payloads_have_types_and_every_bad_field_is_named(app: Faena, h: Harness) -> None:
    @app.queue("bills").task
    async def bill(invoice: Invoice) -> int:
        return len(invoice.lines)

    await bill.enqueue(Invoice(id=9, lines=["a", "b"]))
    assert [ran.result for ran in await h.drain()] == [2]
    with pytest.raises(PayloadError, match="2 bad fields") as refused:
        await bill.enqueue({"id": "nine", "lines": ["a", 7]})  # type: ignore[arg-type]
    assert refused.value.fields == (
        ("id", "expected int, got str"),
        ("lines[1]", "expected str, got int"),
    )


async def test_middleware_wraps_every_attempt() -> None:
    class Shout(Middleware):
        async def execute(self, job: Job, call_next: Execute) -> Any:
            return str(await call_next(job)).upper()

    app = Faena("shop", "redis://localhost", middleware=[Shout()])

    @app.queue("mail").task
    async def greet(name: str) -> str:
        return f"hola, {name}"

    assert await run_inline(greet, "ana") == "HOLA, ANA"


def test_code_without_an_event_loop_has_the_same_operations(valkey: Server) -> None:
    app = Faena("shop", "redis://localhost")

    @app.queue("mail").task
    def greet(name: str) -> str:
        return f"hola, {name}"

    with sync_harness(app, url=valkey.url) as h:
        receipt = app.sync.enqueue(greet, "ana")
        h.drain()
        assert app.sync.result(receipt.handle, timeout="60s") == "hola, ana"


async def test_a_receipt_names_the_durability_that_was_reached() -> None:
    app = Faena("shop", "redis://localhost")

    @app.queue("mail").task
    async def note() -> None: ...

    async with harness(app):
        assert (await note.enqueue()).durability == "memory"
        assert (await note.enqueue(durability="fsynced")).durability == "fsynced"


async def test_waiting_for_a_replica_ends_with_the_patience_of_the_caller() -> None:
    app = Faena("shop", "redis://localhost")

    @app.queue("mail").task
    async def note() -> None: ...

    async with harness(app), asyncio.timeout(60):
        receipt = await note.enqueue(durability="replicated(1)", patience="2s")
        assert (receipt.status, receipt.durability) == ("created", "memory")
        assert await receipt.handle.state() == "ready"


async def test_fsynced_is_refused_by_a_server_that_writes_no_file(
    app: Faena, valkey: Server, h: Harness
) -> None:
    @app.queue("mail").task
    async def note() -> None: ...

    with valkey.client() as client:
        assert client.config_get("appendonly") == {"appendonly": "no"}
    with pytest.raises(StoreRejected, match='"fsynced" needs a server with appendonly yes'):
        await note.enqueue(durability="fsynced")
    assert await h.jobs() == []
