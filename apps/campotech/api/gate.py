"""Turns requests away at once while too many are inside, instead of letting all of them wait.

A request needs a connection of the database twice: for its token, and for its work. A thousand that
wait for ten connections are answered after twenty seconds, and those that waited in vain have used
up connections for nothing. Who is turned away is given a time to come again, each another one, so
that saying no costs little however many ask. Nothing was done for them.
"""

from __future__ import annotations

import math
import time
from typing import Final

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from apps.campotech.api.operators import PATH
from apps.campotech.api.problem import KIND, problem

_SOONEST_S, _LATEST_S = 1.0, 30.0
_PER_S: Final = 50
"""How many are asked to come in the same second."""
_OPEN: Final = frozenset({"/api/health"})
"""Asks for no connection."""
_OPERATORS: Final = f"{PATH}/"
"""Nor do their pages, which are open for hours."""


class Appointments:
    """Gives out the times to come again."""

    def __init__(self) -> None:
        self._last_at = 0.0

    def next_s(self, now: float) -> int:
        """In how many seconds the next one should come."""
        self._last_at = max(now + _SOONEST_S, self._last_at + 1 / _PER_S)
        self._last_at = min(self._last_at, now + _LATEST_S)
        return math.ceil(self._last_at - now)


class Gate:
    """Around the whole API."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most
        self._inside = 0
        self._appointments = Appointments()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or turn it away."""
        if scope["type"] != "http" or _is_open(scope["path"]):
            await self._app(scope, receive, send)
        elif self._inside >= self._most:
            await self._turn_away()(scope, receive, send)
        else:
            self._inside += 1
            try:
                await self._app(scope, receive, send)
            finally:
                self._inside -= 1

    def _turn_away(self) -> JSONResponse:
        wait = {"retry-after": str(self._appointments.next_s(time.monotonic()))}
        content = problem(503, "too many requests at once: try again later")
        return JSONResponse(content, 503, wait, media_type=KIND)


def _is_open(path: str) -> bool:
    return path in _OPEN or path.startswith(_OPERATORS)
