"""The script of cached values. Each value lives in a shard of its own."""

from __future__ import annotations

from typing import NamedTuple

from faena.engine.engine import Engine


class Found(NamedTuple):
    """What a look has found."""

    status: str
    """fresh, lease (the caller is to read it), busy (another is), failed (a moment ago); or gone,
    which the caller says when there is no broker."""
    blob: bytes
    age_us: int
    """-1 where there is no value."""
    failure: str


async def look(engine: Engine, shard: str, token: str, *, fresh_us: int, lease_us: int) -> Found:
    """Look at a value; if it is not fresh and no process reads it, the caller has the lease."""
    named = {"verb": "look", "token": token, "fresh_us": fresh_us, "lease_us": lease_us}
    status, blob, age, failure = await engine.ask("cached_read", shard, **named)
    return Found(status.decode(), bytes(blob), int(age), failure.decode())


async def store(engine: Engine, shard: str, token: str, blob: bytes, keep_us: int) -> None:
    """Keep what was read, if the caller still has the lease."""
    named = {"verb": "store", "token": token, "blob": blob, "keep_us": keep_us}
    await engine.ask("cached_read", shard, **named)


async def fail(engine: Engine, shard: str, token: str, words: str, pause_us: int) -> None:
    """Give the lease back: the source has failed, and is not asked again for a moment."""
    named = {"verb": "fail", "token": token, "blob": words, "keep_us": pause_us}
    await engine.ask("cached_read", shard, **named)
