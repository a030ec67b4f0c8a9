"""Many large payloads: no single command grows with their number."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from faena import Faena, Receipt, Task
from tests._support.valkey import Server

MIB = 1 << 20
LARGE = "x" * (MIB - 100)


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that drops a client whose calls hold much more than one call may."""
    with Server("appendonly no", "maxmemory-clients 40mb", unix=True) as server:
        yield server


@pytest.fixture
async def store(server: Server) -> AsyncIterator[Task[str, None]]:
    app = Faena("shop", server.url)

    @app.queue("q").task
    async def store(text: str) -> None: ...

    yield store
    await app.close()


async def test_a_list_of_large_jobs_goes_out_in_several_calls(store: Task[str, None]) -> None:
    receipts = await store.enqueue_many([LARGE] * 64)
    assert [receipt.status for receipt in receipts] == ["created"] * 64
    assert (await store.app.queues["q"].counts())["ready"] == 64


async def test_large_jobs_of_concurrent_producers_do_not_all_travel_together(
    store: Task[str, None],
) -> None:
    receipts: list[Receipt[None]] = await asyncio.gather(*(store.enqueue(LARGE) for _ in range(64)))
    assert [receipt.status for receipt in receipts] == ["created"] * 64
    assert (await store.app.queues["q"].counts())["ready"] == 64


async def test_many_small_jobs_around_a_large_one_keep_their_order(store: Task[str, None]) -> None:
    texts = [*("a" * 1500), *([LARGE] * 17), *("b" * 1500)]
    receipts = await store.enqueue_many(texts)
    assert len({receipt.id for receipt in receipts}) == len(texts)
    views = [await receipts[at].handle.view() for at in (0, 1499, 1500, 1516, 1517, len(texts) - 1)]
    assert [bytes(view.payload)[1:2] for view in views if view] == [b"a", b"a", *b"x x b b".split()]
