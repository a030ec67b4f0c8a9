"""A worker that starts looks at all of its upstreams, however many."""

from __future__ import annotations

import asyncio

from faena import Faena
from faena.engine.calls.resilience import SHARD
from faena.resilience.breaker_timer import BreakerTimer
from tests._support.eventually import eventually


async def test_panics_of_all_upstreams_end_though_there_are_hundreds(shop: Faena) -> None:
    names = [f"afip{i}" for i in range(250)]
    upstreams = [shop.upstream(name) for name in names]
    panicked = [upstreams[0], upstreams[120], upstreams[249]]
    for one in panicked:
        await one.panic(reason="stop", by="ana", lasting="50ms")
    engine = (await shop.runtime()).engine
    timer = asyncio.create_task(BreakerTimer(engine, names).run())

    async def ended() -> set[str]:
        rows = await engine.command("XRANGE", SHARD, "events", "-", "+")
        flat = [[part.decode() for part in row] for _, row in rows]
        return {
            row[i + 1].partition("\n")[0]
            for row in flat
            for i in range(4, len(row), 2)
            if row[i] == "upstream_panic_ended"
        }

    async def is_over() -> bool:
        return await ended() == {one.name for one in panicked}

    try:
        await eventually(is_over)
    finally:
        timer.cancel()
        await asyncio.wait([timer])
