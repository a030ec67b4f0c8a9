"""What services have in common whose callers show a bearer token: one handler for each address."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hmac import compare_digest

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from apps.sandbox.stand_in import Refused, Reply, StandIn


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request whose token was right."""

    request: Request
    body: bytes
    is_wrong: bool

    @property
    def id(self) -> str:
        """Of what it is about."""
        return self.request.path_params["id"]

    @property
    def is_json(self) -> bool:
        """Whether it says so."""
        return self.request.headers.get("content-type", "").partition(";")[0] == "application/json"


Handler = Callable[[Ask], Reply | Awaitable[Reply]]


class BearerService(StandIn):
    """A service with one token."""

    access_token: str
    unauthorized: Callable[[], Refused]
    """What is said to those who do not show it."""

    def route(self, method: str, path: str, handler: Handler, operation: str = "") -> Route:
        """An address and who answers there; the ledger names both, or the `operation`."""
        name = operation or f"{method} {path}"

        async def answer(request: Request) -> Response:
            body, subject = await request.body(), request.path_params.get("id", "")

            async def work(is_wrong: bool) -> Reply:
                given = request.headers.get("authorization", "")
                if not compare_digest(given.encode(), f"Bearer {self.access_token}".encode()):
                    raise self.unauthorized()
                reply = handler(Ask(request=request, body=body, is_wrong=is_wrong))
                return await reply if inspect.isawaitable(reply) else reply

            return await self.play(name, work, subject=subject)

        return Route(path, answer, methods=[method], name=name)
