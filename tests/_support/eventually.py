"""Waiting for a condition instead of for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

PATIENCE_S = 60.0
"""How long a test waits for what must happen, however slow the machine is."""

_SHORTEST_S, _LONGEST_S = 0.005, 0.05


async def eventually(
    check: Callable[[], Awaitable[object]] | Callable[[], object], *, within: float = PATIENCE_S
) -> None:
    """Return once `check` answers something true; fail the test when it never does."""
    pause_s = _SHORTEST_S
    try:
        async with asyncio.timeout(within):
            while True:
                answer = check()
                if isinstance(answer, Awaitable):
                    answer = await answer
                if answer:
                    return
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 1.2, _LONGEST_S)
    except TimeoutError:
        raise AssertionError(f"{check} must become true within {within:g} s") from None
