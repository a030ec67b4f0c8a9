"""What a worker says of itself where it serves; one that stops is known no more at once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterable

from faena.engine import Engine
from faena.engine.loader import library_name

_LONGEST_S = 1.0
"""No stop waits longer than this for a broker that is away."""


def about_this_process() -> str:
    """Pid, version, library and host, as `sign_in` in lua/lib/worker/presence.lua keeps them."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - slow to load

    try:
        release = version("faena")
    except PackageNotFoundError:  # run from its source
        release = "?"
    return f"{os.getpid()} {release} {library_name()} {socket.gethostname() or '?'}"


async def sign_out(engine: Engine, worker: str, shards: Iterable[str]) -> None:
    """Strike a worker off where it has served; an entry that stays runs out by itself."""
    leaving = [_leave(engine, worker, shard) for shard in shards]
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asyncio.gather(*leaving, return_exceptions=True), _LONGEST_S)


async def _leave(engine: Engine, worker: str, shard: str) -> None:
    """In this order: whoever is among the workers and says nothing of itself is removed in time."""
    await engine.command("HDEL", shard, "about", worker)
    await engine.command("ZREM", shard, "workers", worker)
