"""The dashboard as an ASGI application, to be served alone or mounted in a program's own.

    web.mount("/admin/queues", dashboard(app, access=Access()))

Each request passes the same steps: who sends it, whether a browser was tricked into it, whether the
route is open to them; what is refused says so as a page or as a problem.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Served
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from faena.errors import ConfigError, FaenaError
from faena.values.keywords import known_keywords
from faena.web.access.access import Access
from faena.web.access.gate import Gate, is_forged
from faena.web.answer import Refusal, not_found, refused, see_other
from faena.web.audit import Trail
from faena.web.development import link_for
from faena.web.frame import frame_of
from faena.web.live import Hub
from faena.web.operation.declared import OPERATIONS
from faena.web.recent import Recent
from faena.web.route import Route, Visit
from faena.web.routes import ROUTES
from faena.web.site import Site
from faena.web.standing import Standings
from faena.web.template import Templates

if TYPE_CHECKING:
    from faena.app import Faena

_SAFE: Final = ("GET", "HEAD")
_MOST_BODY: Final = 256 * 1024
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


@known_keywords("dashboard")
def dashboard(
    app: Faena, *, access: Access | None = None, environment: str | None = None
) -> Dashboard:
    """The dashboard and the admin API of an app; the app is connected by the first request.

    `access` says who may come in: it must be given. `environment` is shown beside the app's name,
    by default what FAENA_ENV says.
    """
    if access is None:
        raise ConfigError(
            "access must say who may come in, such as Access(users=True): "
            "without it the dashboard does not start",
            field="access",
        )
    named = environment if environment is not None else os.environ.get("FAENA_ENV", "development")
    return Dashboard(app, access, named)


class Dashboard:
    """The application."""

    def __init__(self, app: Faena, access: Access, environment: str) -> None:
        self.app, self.access, self._environment = app, access, environment
        self._templates = Templates()
        self._site: Site | None = None
        self._served = _Guarded(Starlette(routes=[*map(self._route, ROUTES)], lifespan=self._life))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._served(scope, receive, send)

    async def site(self) -> Site:
        """What its requests share; made by the first one."""
        if self._site is None:
            engine = (await self.app.runtime()).engine
            if self._site is None:
                self._site = Site(
                    app=self.app,
                    gate=Gate(engine, self.access),
                    trail=Trail(engine, self.app.new_id),
                    hub=Hub(),
                    recent=Recent(self.app),
                    standings=Standings(self.app),
                    operations={one.name: one for one in OPERATIONS},
                    templates=self._templates,
                    environment=self._environment,
                )
        return self._site

    async def link(self, address: str) -> str:
        """A link that lets one person in as an owner, once; `address` is where it is mounted.

        It needs `Access(link=True)`.
        """
        if not self.access.link:
            raise ConfigError("a link needs access=Access(link=True)", field="access")
        return await link_for(await self.site(), address)

    async def close(self) -> None:
        """End what tabs listen to."""
        if self._site is not None:
            await self._site.hub.close()

    @asynccontextmanager
    async def _life(self, _web: Starlette) -> AsyncGenerator[None]:
        async with self.app:
            yield
            await self.close()

    def _route(self, route: Route) -> Served:
        return Served(route.path, self._endpoint(route), methods=[route.method], name=route.name)

    def _endpoint(self, route: Route) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            site = await self.site()
            visit = Visit(request=request, site=site, known=None)
            try:
                visit = await _admitted(route, visit)
                if visit.known is None and route.needs is not None:
                    return _at_the_door(route, visit)
                if route.kind == "page" and request.method in _SAFE and visit.known is not None:
                    visit = replace(visit, frame=await frame_of(visit))
                return await route.answer(visit)
            except (Refusal, FaenaError) as error:
                return refused(visit, route.kind, error)

        return answer


async def _admitted(route: Route, visit: Visit) -> Visit:
    """The visit with its caller; raises what speaks against it."""
    request = visit.request
    if int(request.headers.get("content-length") or 0) > _MOST_BODY:
        raise Refusal(413, "too_large", f"a request must be at most {_MOST_BODY} bytes")
    known = await visit.site.gate.known(request)
    visit = Visit(request=request, site=visit.site, known=known)
    if known is None or route.needs is None:
        return visit
    if not known.caller.may(route.needs):
        words = f"this needs the permission {route.needs.value}, which {known.caller.name} lacks"
        raise Refusal(403, "forbidden", words)
    if known.caller.tenant is not None and not route.is_for_tenant:
        raise Refusal(403, "forbidden", "this shows more than one tenant's jobs")
    if request.method not in _SAFE and is_forged(request, known, await _token_of(request)):
        words = "the form is too old, or comes from another page: open this page again"
        raise Refusal(403, "forged", words)
    return visit


async def _token_of(request: Request) -> str:
    """The session's token: in a header, or in the form."""
    header = request.headers.get("x-faena-token")
    if header is not None:
        return header
    if request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return str((await request.form(max_fields=200)).get("token", ""))
    return ""


def _at_the_door(route: Route, visit: Visit) -> Response:
    """A stranger: people are shown the way in, programs are told to bring a token."""
    if route.kind == "page":
        return see_other(visit, "/sign-in")
    answer = refused(
        visit, "api", Refusal(401, "unauthorized", "a session or a token that is known is needed")
    )
    answer.headers["WWW-Authenticate"] = "Bearer"
    return answer


class _Guarded:
    """Adds the headers that every answer has, and bounds bodies that do not say their size."""

    def __init__(self, inner: ASGIApp) -> None:
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        size = 0

        async def bounded() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > _MOST_BODY:
                return {"type": "http.disconnect"}
            return message

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._inner(scope, bounded, guarded)


def unknown(visit: Visit) -> Response:
    """What no route answers."""
    return refused(visit, "page", not_found())
