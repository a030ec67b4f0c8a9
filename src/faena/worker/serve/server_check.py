"""Whether other servers that an app uses, such as its database, answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from faena.errors import FaenaError

ServerCheck = Callable[[], Awaitable[None]]
"""Raises an error of Faena if its server does not answer."""

_WITHIN_S: Final = 2.0
"""As long as the broker has: a probe is answered within three seconds."""


async def check_all(checks: Mapping[str, ServerCheck]) -> dict[str, str | None]:
    """Ask all at once: why one does not answer, by its name; None if it does."""
    found = await asyncio.gather(*(_check(name, one) for name, one in checks.items()))
    return dict(zip(checks, found, strict=True))


async def _check(name: str, check: ServerCheck) -> str | None:
    try:
        async with asyncio.timeout(_WITHIN_S):
            await check()
    except TimeoutError:
        return f"the {name} does not answer within {_WITHIN_S:g} s"
    except (FaenaError, OSError) as error:
        return f"the {name} does not answer: {error}"
    return None
