"""Archived rows over HTTP: a tenant asks for its own, and downloads them by a link that expires.

    web.mount("/api", archives_app(pg, tenant_of=tenant_of))

    GET /archives?table=jobs&from=2023-01-01&to=2023-12-31    202 with the address of its status
    GET /archives/ID                                          how far it is; then the link
    GET /archives/download/TOKEN                              the file: gzip of JSON lines

The tenant comes from a callable that reads the request's credential, never from the query. Requests
and links of others are answered as if they did not exist.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, Router

from faena.contrib.problem import problem, problem_of
from faena.contrib.router import TenantOf
from faena.errors import ArgumentError, ConfigError, FaenaError, shown
from faena.pg.postgres import Postgres
from faena.pg.retrieval.link import LinkExpired, LinkRefused
from faena.pg.retrieval.retrievals import Retrievals
from faena.pg.retrieval.view import RetrievalView
from faena.values.keywords import known_keywords

_POLL_S: Final = "2"
_KNOWN: Final = ("table", "from", "to")
_FAILED: Final = "the archives of this time cannot be read now: the operators were told"


_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""All but GET are refused by a problem; the router would answer with a line of text."""


@known_keywords("archives_app")
def archives_app(
    pg: Postgres, *, tenant_of: TenantOf | None = None, open_links: bool = False
) -> Router:
    """An ASGI application to be mounted; see the module for its routes.

    `tenant_of` returns the tenant of a request's credential, or None if it has none. A link needs
    the credential of its tenant too, unless `open_links` lets whoever has it download the file.
    Refused without `pg.retrieval(…)` or without a secret to sign links with.
    """
    if tenant_of is None or not callable(tenant_of):
        raise ConfigError(
            "tenant_of must be a function that takes a request and returns the tenant of its "
            f"credential, got {shown(tenant_of)}",
            field="tenant_of",
        )
    retrievals = pg.retrievals
    retrievals.options.signing()
    routes = _Routes(retrievals, tenant_of, open_links=open_links)
    return Router(
        routes=[
            Route("/archives", routes.start, methods=_METHODS),
            Route("/archives/download/{token}", routes.download, methods=_METHODS),
            Route("/archives/{id}", routes.look, methods=_METHODS),
        ]
    )


class _Routes:
    def __init__(self, retrievals: Retrievals, tenant_of: TenantOf, *, open_links: bool) -> None:
        self._retrievals = retrievals
        self._tenant_of = tenant_of
        self._open_links = open_links

    async def start(self, request: Request) -> Response:
        """Begin a request, or find it."""
        return await self._answer(request, self._start)

    async def look(self, request: Request) -> Response:
        """Tell of one."""
        return await self._answer(request, self._look)

    async def download(self, request: Request) -> Response:
        """Stream its file."""
        return await self._answer(request, self._download)

    async def _answer(
        self, request: Request, do: Callable[[Request, str | None], Awaitable[Response]]
    ) -> Response:
        try:
            _check_method(request)
            found = self._tenant_of(request)
            tenant = await found if inspect.isawaitable(found) else found
            is_open = self._open_links and do == self._download
            if not tenant and not is_open:
                return problem(401, "unauthorized", "the request has no valid credential")
            return await do(request, tenant or None)
        except HTTPException as error:
            refused = problem(error.status_code, "refused", str(error.detail))
            refused.headers.update(error.headers or {})
            return refused
        except LinkExpired as error:
            return problem(410, "expired", str(error))
        except LinkRefused as error:
            return problem(403, "forbidden", str(error))
        except FaenaError as error:
            answer = problem_of(error)
            if answer is None:
                raise
            return answer

    async def _start(self, request: Request, tenant: str | None) -> Response:
        given = request.query_params
        for name in given:
            if name not in _KNOWN or len(given.getlist(name)) > 1:
                raise ArgumentError(
                    "the query must have table, from and to, each once", field="query"
                )
        for name in _KNOWN:
            if not given.get(name):
                raise ArgumentError(f"{name} must be given", field=name)
        view = await self._retrievals.retrieve(
            given["table"], tenant=tenant or "", start=given["from"], end=given["to"]
        )
        where = f"{_root(request)}/archives/{view.id}"
        facts = await self._facts(request, view, tenant or "")
        return _json(202, facts | {"status": where}, {"Location": where, "Retry-After": _POLL_S})

    async def _look(self, request: Request, tenant: str | None) -> Response:
        view = await self._retrievals.look(request.path_params["id"], tenant=tenant or "")
        headers = {"Retry-After": _POLL_S} if view.state == "waiting" else None
        return _json(200, await self._facts(request, view, tenant or ""), headers)

    async def _facts(self, request: Request, view: RetrievalView, tenant: str) -> dict[str, Any]:
        facts = {name: value for name, value in view.to_dict().items() if value is not None}
        if facts.pop("problem", None):
            facts["problem"] = _FAILED
        if view.state == "ready":
            token, until = await self._retrievals.link(view.id, tenant=tenant)
            facts["link"] = f"{_root(request)}/archives/download/{token}"
            facts["link_expires_at"] = until.isoformat()
        return facts

    async def _download(self, request: Request, tenant: str | None) -> Response:
        whose = None if self._open_links else tenant
        file = await self._retrievals.open(request.path_params["token"], tenant=whose)
        headers = {
            "Content-Length": str(file.size),
            "Content-Disposition": f'attachment; filename="{file.name}"',
            "Cache-Control": "private, no-store",
            "X-Content-Type-Options": "nosniff",
            "X-Checksum-Sha256": file.sha256,
        }
        return StreamingResponse(file.chunks(), 200, headers, media_type="application/gzip")


def _check_method(request: Request) -> None:
    if request.method not in {"GET", "HEAD"}:
        raise HTTPException(405, "only GET is possible here", {"Allow": "GET, HEAD"})


def _root(request: Request) -> str:
    return str(request.scope.get("root_path", ""))


def _json(status: int, facts: Any, headers: dict[str, str] | None = None) -> Response:
    more = {"Cache-Control": "private, no-store", **(headers or {})}
    return Response(msgspec.json.encode(facts), status, more, media_type="application/json")
