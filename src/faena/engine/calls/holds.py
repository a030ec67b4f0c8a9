"""Extends the hold of a shard, in one call."""

from __future__ import annotations

from faena.engine.engine import Engine


async def extend_hold(engine: Engine, shard: str, reason: str, duration_us: int, by: str) -> None:
    """Hold a shard for at least this long; a longer hold with the same reason is kept."""
    await engine.ask("hold", shard, reason=reason, duration=duration_us, by=by, stays="1")
