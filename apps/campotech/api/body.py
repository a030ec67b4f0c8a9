"""Refuses bodies that are larger than any that makes sense, before they are in memory."""

from __future__ import annotations

from typing import Final

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from apps.campotech.api.problem import KIND, problem

MOST_BYTES: Final = 1 << 20
"""As much as the payload of a job may have."""
_WEBHOOKS: Final = "/webhooks/"
"""Providers send more at once; these routes count for themselves."""
_REFUSAL: Final = f"a body must have at most {MOST_BYTES} bytes"


class BoundedBody:
    """ASGI middleware: 413 for what says that it is too large, and for what turns out to be."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http" or scope["path"].startswith(_WEBHOOKS):
            await self._app(scope, receive, send)
        elif _length(scope) > MOST_BYTES:
            answer = JSONResponse(problem(413, _REFUSAL), 413, media_type=KIND)
            await answer(scope, receive, send)
        else:
            await self._app(scope, _counted(receive), send)


def _length(scope: Scope) -> int:
    """What the header says; a body without one is counted as it comes."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


def _counted(receive: Receive) -> Receive:
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > MOST_BYTES:
            raise HTTPException(413, _REFUSAL)
        return message

    return counted
