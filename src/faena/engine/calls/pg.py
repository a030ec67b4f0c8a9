"""Events of the PostgreSQL beside the broker; they are among those of upstreams, of no queue."""

from __future__ import annotations

from faena.engine.calls.resilience import SHARD
from faena.engine.engine import Engine


async def tell(engine: Engine, event: str, what: str, why: str) -> None:
    """Record an event; `database_event.lua` lists them."""
    await engine.ask("database_event", SHARD, event=event, what=what, why=why)
