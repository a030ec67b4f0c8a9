"""A process that carries out a bulk action and ends itself with SIGKILL at a given step.

A step is a note, or a call that changes jobs. It dies before the n-th one, or when the broker has
carried that out and nobody has heard of it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any

from faena import Faena, Retry, Task
from faena.bulk import driver
from faena.deadletter.desk import Desk
from faena.engine import Engine
from faena.engine.calls import bulk as calls
from faena.engine.calls.deadletter import DeskCalls

_STEPS: tuple[tuple[Any, str], ...] = (
    *((calls.BulkCalls, name) for name in ("ask", "rerun")),
    *((Engine, name) for name in ("cancel", "promote", "remove")),
    (DeskCalls, "dismiss"),
    (Desk, "retry_many_as_new"),
)


def bulk_app(url: str, namespace: str) -> tuple[Faena, Task[int, int]]:
    """Jobs of a negative number die, the others complete."""
    app = Faena("shop", url, namespace=namespace)

    @app.queue("mail", retry=Retry.fixed("1s", attempts=1)).task
    async def send(number: int) -> int:
        if number < 0:
            raise ConnectionError("the printer is on fire")
        return number

    return app, send


def carry_out(url: str, namespace: str, ident: str, fatal: int, is_after: bool) -> None:
    """Carry it out in small slices, up to a step; its lease is over when it is dead."""
    driver.SLICE, driver.CALL, driver.DESK_SLICE, calls.LEASE_US = 6, 3, 3, 1
    seen = 0

    def watched(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(*given: Any, **named: Any) -> Any:
            nonlocal seen
            seen += 1
            if seen == fatal and not is_after:
                os.kill(os.getpid(), signal.SIGKILL)
            mine = seen
            answer = await original(*given, **named)
            if mine == fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return call

    for owner, name in _STEPS:
        setattr(owner, name, watched(getattr(owner, name)))
    asyncio.run(_carry_out(bulk_app(url, namespace)[0], ident))


async def _carry_out(app: Faena, ident: str) -> None:
    async with app:
        await app.bulk.carry_on(ident)
