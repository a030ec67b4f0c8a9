"""How long calls may take that are made inside a bound."""

from __future__ import annotations

import asyncio

from faena.engine.wire.patience import bound_at, within
from faena.producing.batcher import _within_ms


async def test_a_bound_ends_with_its_block_also_for_tasks_that_were_begun_there() -> None:
    has_begun, is_over = asyncio.Event(), asyncio.Event()

    async def later() -> float | None:
        assert bound_at() is not None
        has_begun.set()
        await is_over.wait()
        return bound_at()

    with within(5):
        task = asyncio.create_task(later())
        await has_begun.wait()
    is_over.set()
    assert await task is None


async def test_servers_may_never_take_for_ever_to_confirm() -> None:
    now = asyncio.get_running_loop().time()
    assert _within_ms(None) == _within_ms(now + 60) == 5_000
    assert _within_ms(now + 0.001) == _within_ms(now - 1) == 1  # 0 would be for ever
