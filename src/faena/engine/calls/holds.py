"""Holds that a shard is told of by another, each one call."""

from __future__ import annotations

from faena.engine.engine import Engine


async def extend_hold(engine: Engine, shard: str, reason: str, duration_us: int, by: str) -> None:
    """Hold a shard for at least so long; a hold of this reason that lasts longer stays."""
    await engine.ask("hold", shard, reason=reason, duration=duration_us, by=by, stays="1")
