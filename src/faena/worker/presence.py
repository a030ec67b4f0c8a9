"""The entry of a worker in the shards it serves; a stopping worker removes it immediately."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import socket
from collections.abc import Iterable

from faena.engine import Engine
from faena.engine.script_library import library_name

_LONGEST_S = 1.0
"""The longest time that a stop waits for an unreachable broker."""


def about_this_process(slots: int) -> str:
    """Pid, version, library, slots and host, as lua/lib/worker/presence.lua keeps them."""
    host = socket.gethostname() or "?"
    return f"{os.getpid()} {_release()} {library_name()} slots={slots} {host}"


@functools.cache
def _release() -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - slow to load

    try:
        return version("faena")
    except PackageNotFoundError:  # run from its source
        return "?"


async def sign_out(engine: Engine, worker: str, shards: Iterable[str]) -> None:
    """Remove a worker's entries from its shards; an entry that is left expires."""
    leaving = [_leave(engine, worker, shard) for shard in shards]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LONGEST_S):
            await asyncio.gather(*leaving, return_exceptions=True)


async def _leave(engine: Engine, worker: str, shard: str) -> None:
    """Delete in this order: if the second call fails, the entry in `workers` expires."""
    await engine.command("HDEL", shard, "about", worker)
    await engine.command("ZREM", shard, "workers", worker)
