"""The dashboard as an ASGI application, to be served alone or mounted in a program's own.

    web.mount("/admin/queues", dashboard(app, access=Access()))

Each request passes the same steps: who sends it, whether a browser was tricked into it, whether the
route is open to them; what is refused says so as a page or as a problem.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.routing import Route as Served
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from faena.contrib.problem import problem
from faena.errors import ConfigError, FaenaError
from faena.values.keywords import known_keywords
from faena.web.access.access import Access
from faena.web.access.gate import Gate, address_of, is_forged
from faena.web.advised import Advised
from faena.web.answer import Refusal, not_found, refused, see_other
from faena.web.audit import Trail
from faena.web.callers import USUAL_RATE, Callers
from faena.web.carrying import Carrying
from faena.web.census import Census
from faena.web.development import link_for
from faena.web.frame import frame_of
from faena.web.live import Hub
from faena.web.operation.declared import OPERATIONS
from faena.web.recent import Recent
from faena.web.route import Kind, Route, Visit
from faena.web.routes import API, ROUTES
from faena.web.seen import Seen, at_api, seen_at
from faena.web.site import Site
from faena.web.standing import Standings
from faena.web.template import Templates
from faena.web.veil import Veil

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
    app: Faena,
    *,
    access: Access | None = None,
    environment: str | None = None,
    address: str | None = None,
    api_rate: str = USUAL_RATE,
) -> Dashboard:
    """The dashboard and the admin API of an app; the app is connected by the first request.

    `access` says who may come in: it must be given. `environment` is shown beside the app's name,
    by default what FAENA_ENV says. `address` is what browsers see where a proxy changes it, such
    as https://ops.example.com/jobs: links, cookies and checks go by it. `api_rate` is
    how often a caller of the API may ask each process, such as 600/min.
    """
    if access is None:
        raise ConfigError(
            "access must say who may come in, such as Access(users=True): "
            "without it the dashboard does not start",
            field="access",
        )
    named = environment if environment is not None else os.environ.get("FAENA_ENV", "development")
    shared = Shared(environment=named, callers=Callers(api_rate), seen=seen_at(address))
    return Dashboard(app, access, shared)


class Shared(NamedTuple):
    """What its requests share before the app is connected."""

    environment: str
    callers: Callers
    seen: Seen | None
    """What browsers see; None: what requests say."""


class Dashboard:
    """The application."""

    def __init__(self, app: Faena, access: Access, shared: Shared) -> None:
        self.app, self.access, self._shared = app, access, shared
        self._templates = Templates()
        self._site: Site | None = None
        self._served = _Guarded(self._application(ROUTES, is_api=False), shared.seen)
        alone = [_alone(one) for one in ROUTES if one.kind == "api"]
        self.api = _Guarded(self._application(alone, is_api=True), at_api(shared.seen))
        """The API alone, to be mounted at /admin/api beside the dashboard."""

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
                    advised=Advised(self.app),
                    operations={one.name: one for one in OPERATIONS},
                    callers=self._shared.callers,
                    census=Census(self.app),
                    veil=Veil(),
                    templates=self._templates,
                    carrying=Carrying(self.app),
                    environment=self._shared.environment,
                    places={
                        one.path: one
                        for one in ROUTES
                        if one.method == "GET" and one.kind == "page"
                    },
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
        """End what tabs listen to, and leave bulk actions to others."""
        if self._site is not None:
            await self._site.carrying.close()
            await self._site.hub.close()
            await self._site.census.close()
            await self._site.advised.close()

    @asynccontextmanager
    async def _life(self, _web: Starlette) -> AsyncGenerator[None]:
        async with self.app:
            yield
            await self.close()

    def _application(self, routes: Sequence[Route], *, is_api: bool) -> Starlette:
        made = Starlette(
            routes=[*map(self._route, routes)],
            lifespan=self._life,
            exception_handlers={404: self._unknown, 405: self._unknown, 500: self._failed},
        )
        made.state.is_api = is_api
        return made

    async def _unknown(self, request: Request, _error: Exception) -> Response:
        """What no route answers, or none with this method."""
        site = await self.site()
        visit = Visit(request=request, site=site, known=await site.gate.known(request))
        allowed = _allowed(request)
        if not allowed:
            return refused(visit, _kind(request), not_found())
        words = f"this takes {', '.join(allowed)}, not {request.method}"
        answer = refused(visit, _kind(request), Refusal(405, "method", words))
        answer.headers["Allow"] = ", ".join(allowed)
        return answer

    async def _failed(self, request: Request, _error: Exception) -> Response:
        """What was not foreseen; the server's log has it."""
        words = "something went wrong here: the log of the server says what"
        if _kind(request) == "api":
            return problem(500, "internal", words)
        return Response(words, 500, media_type="text/plain")

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
    if _told_size(request.scope) > _MOST_BODY:
        raise _too_large()
    known = await visit.site.gate.known(request)
    visit = Visit(request=request, site=visit.site, known=known)
    if route.kind == "api":
        _check_rate(visit)
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


def _check_rate(visit: Visit) -> None:
    """A caller of the API has so many requests; strangers at one address share them."""
    known = visit.known
    name = f"from {address_of(visit.request)}" if known is None else f"as {known.caller.name}"
    wait_s = visit.site.callers.wait_s(name)
    if wait_s:
        raise Refusal(429, "too_many", "too many requests: come again later", retry_after=wait_s)


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

    def __init__(self, inner: ASGIApp, seen: Seen | None) -> None:
        self._inner, self._seen = inner, seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        if self._seen is not None:
            scope = self._seen.scope(scope)
        size = 0

        async def bounded() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > _MOST_BODY:
                raise _too_large()
            return message

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._inner(scope, bounded, guarded)


def _told_size(scope: Scope) -> int:
    """How large the body is said to be; one that says nonsense is bounded as it is read."""
    told = Headers(scope=scope).get("content-length", "")
    return int(told) if told.isdecimal() and len(told) < 20 else 0


def _too_large() -> Refusal:
    return Refusal(413, "too_large", f"a request must be at most {_MOST_BODY} bytes")


def _alone(route: Route) -> Route:
    """A route of the API where it is mounted alone."""
    return replace(route, path=route.path.removeprefix(API))


def _kind(request: Request) -> Kind:
    """How a request is answered that no route knows."""
    path = request.url.path.removeprefix(request.scope.get("root_path", ""))
    is_api = path.startswith(f"{API}/") or request.scope["app"].state.is_api
    return "api" if is_api else "page"


def _allowed(request: Request) -> list[str]:
    """The methods of the routes at this path."""
    found: set[str] = set()
    for route in request.scope["app"].routes:
        match, _ = route.matches(request.scope)
        if match is not Match.NONE:
            found |= route.methods
    return sorted(found)
