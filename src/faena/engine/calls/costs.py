"""Reports the costs that running jobs have used, for limits by cost."""

from __future__ import annotations

from collections.abc import Mapping

from faena.engine.engine import Engine
from faena.errors import LeaseLost


async def spend(engine: Engine, queue: str, job: str, lease: str, used: Mapping[str, int]) -> None:
    """Correct the cost that a running job's claim reserved; a repeated call counts once."""
    flat = [part for pair in used.items() for part in pair]
    if await engine.ask_declared("spend", queue, *flat, id=job, lease=lease) != b"OK":
        raise LeaseLost(f"job {job} is no longer held by this worker", op="spend")
