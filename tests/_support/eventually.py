"""Waiting for a condition instead of for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


async def eventually(
    check: Callable[[], Awaitable[object]] | Callable[[], object], *, within: float = 60.0
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
