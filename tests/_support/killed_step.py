"""A process that ends itself with SIGKILL before its n-th step that changes something anywhere.

A step is a statement to PostgreSQL, a commit, a file that gets its name or is removed, or a call
that removes or cancels jobs at the broker. So each moment between two changes is the end once.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psycopg

from faena.engine import Engine

_STEPS: tuple[tuple[Any, str], ...] = (
    (psycopg.AsyncConnection, "execute"),
    (psycopg.AsyncConnection, "commit"),
    (Engine, "remove"),
    (Engine, "cancel"),
)
_FILES = ("replace", "unlink")


def run(work: Callable[..., Awaitable[object]], fatal: int, *args: Any) -> None:
    """Do the work up to a step."""
    seen = 0

    def step() -> None:
        nonlocal seen
        seen += 1
        if seen == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def watched(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            step()
            return original(*given, **named)

        return call

    for owner, name in (*_STEPS, *((Path, one) for one in _FILES)):
        setattr(owner, name, watched(getattr(owner, name)))
    asyncio.run(_ended(work(*args)))


async def _ended(work: Awaitable[object]) -> None:
    await work
