"""The page of metrics in a web program: one program that has it tells the numbers of all queues.

    Route("/metrics", metrics_endpoint(jobs))                         # Starlette
    web.add_route("/metrics", metrics_endpoint(jobs, token=secret))   # FastAPI

It is a plain ASGI application, so any other web framework can mount it as well. A broker that does
not answer makes no error page: the page then says so by `faena_broker_up`.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, Final

from faena.app import Faena
from faena.errors import ConfigError, shown
from faena.options.fields import check_is
from faena.telemetry.metrics.exposition import check_extra
from faena.worker.worker import Worker

__all__ = ["metrics_endpoint"]

_Scope = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_Headers = Iterable[tuple[bytes, bytes]]

_OPENMETRICS: Final = b"application/openmetrics-text"
_PLAIN: Final = (b"content-type", b"text/plain; charset=utf-8")


def metrics_endpoint(
    app: Faena, *, worker: Worker | None = None, token: str | None = None
) -> MetricsEndpoint:
    """An ASGI application that answers GET with `app.metrics()`.

    With `worker`, which runs in this process, the page has what that measured as well. With `token`
    only who sends `Authorization: Bearer TOKEN` gets it: the page names tenants.
    """
    check_extra()
    check_is("app", app, Faena)
    if worker is not None:
        check_is("worker", worker, Worker)
    if token is not None and not (isinstance(token, str) and token):  # pyright: ignore[reportUnnecessaryIsInstance] - users' code
        raise ConfigError(f"token must be a non-empty string, got {shown(token)}", field="token")
    return MetricsEndpoint(app, worker, token)


class MetricsEndpoint:
    """Answers requests for the page."""

    def __init__(self, app: Faena, worker: Worker | None, token: str | None) -> None:
        self._app, self._worker = app, worker
        self._given = None if token is None else f"Bearer {token}".encode()

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:  # noqa: ARG002 - ASGI's own
        """Answer one request."""
        if scope["type"] != "http":
            raise ConfigError(f"metrics are read over http, got {scope['type']}", field="scope")
        headers: Mapping[bytes, bytes] = dict(scope["headers"])
        if scope["method"] not in {"GET", "HEAD"}:
            await _answer(send, 405, b"use GET\n", [_PLAIN, (b"allow", b"GET, HEAD")])
        elif not self._may_read(headers):
            challenge = (b"www-authenticate", b"Bearer")
            await _answer(send, 401, b"a token is needed\n", [_PLAIN, challenge])
        else:
            await self._show(scope, headers, send)

    def _may_read(self, headers: Mapping[bytes, bytes]) -> bool:
        given = headers.get(b"authorization", b"")
        return self._given is None or hmac.compare_digest(given, self._given)

    async def _show(self, scope: _Scope, headers: Mapping[bytes, bytes], send: _Send) -> None:
        page = await self._app.metrics(
            measured=None if self._worker is None else self._worker.measured,
            openmetrics=_OPENMETRICS in headers.get(b"accept", b""),
        )
        kind = (b"content-type", page.content_type.encode())
        await _answer(send, 200, b"" if scope["method"] == "HEAD" else page.body, [kind])


async def _answer(send: _Send, status: int, body: bytes, headers: _Headers) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [*headers]})
    await send({"type": "http.response.body", "body": body})
