"""A worker that stops is known no more at once, not only when its entry runs out."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable

from faena.engine import Engine

_LONGEST_S = 1.0
"""No stop waits longer than this for a broker that is away."""


async def sign_out(engine: Engine, worker: str, shards: Iterable[str]) -> None:
    """Strike a worker off where it has served; an entry that stays runs out by itself."""
    leaving = [engine.command("ZREM", shard, "workers", worker) for shard in shards]
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asyncio.gather(*leaving, return_exceptions=True), _LONGEST_S)
