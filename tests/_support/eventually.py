"""Waiting for a condition instead of for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

PATIENCE_S = 60.0
"""How long a test waits for what must happen, however slow the machine is."""


async def eventually(
    check: Callable[[], Awaitable[object]] | Callable[[], object], *, within: float = PATIENCE_S
) -> None:
    """Return once `check` answers something true; fail the test when it never does."""
    try:
        async with asyncio.timeout(within):
            while True:
                answer = check()
                if isinstance(answer, Awaitable):
                    answer = await answer
                if answer:
                    return
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"{check} must become true within {within:g} s") from None
