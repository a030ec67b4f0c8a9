"""Turns requests away at once while too many are inside, instead of letting all of them wait.

A request needs a connection of the database twice: for its token, and for its work. A thousand that
wait for ten connections are answered after twenty seconds, and those that waited in vain have used
up connections for nothing. Who is turned away has been told when to come again, and nothing was
done.
"""

from __future__ import annotations

import random
from typing import Final

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from apps.campotech.api.problem import KIND, problem

_SOONEST_S, _LATEST_S = 1, 4
"""When they may come again: not all at once."""
_OPEN: Final = frozenset({"/api/health"})
"""Asks for no connection."""


class Gate:
    """Around the whole API."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most
        self._inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or turn it away."""
        if scope["type"] != "http" or scope["path"] in _OPEN:
            await self._app(scope, receive, send)
        elif self._inside >= self._most:
            await _turn_away()(scope, receive, send)
        else:
            self._inside += 1
            try:
                await self._app(scope, receive, send)
            finally:
                self._inside -= 1


def _turn_away() -> JSONResponse:
    wait = {"retry-after": str(random.randint(_SOONEST_S, _LATEST_S))}
    content = problem(503, "too many requests at once: try again later")
    return JSONResponse(content, 503, wait, media_type=KIND)
