"""Serves metrics over HTTP, for `faena metrics --serve`: for a scraper or two, and an autoscaler.

Requests are read in threads by the standard library's server; what they ask for is made on the
event loop, which has the app's connection.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple

import msgspec

from faena.app import Faena
from faena.errors import ConfigError, StoreError

_log = logging.getLogger("faena.cli")

_SCALING: Final = "/scaling"
_PATHS: Final = ("/metrics", "/", _SCALING)
_WITHIN_S: Final = 10.0
"""How long a client may take for its request; the page is there within five seconds."""


@contextmanager
def serving(app: Faena, host: str, port: int) -> Generator[str]:
    """Answer requests during the block; its value is the page's address."""
    try:
        server = _Server((host, port), _handler(app, asyncio.get_running_loop()))
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host} port {port}: {error.strerror or error}", field="port"
        ) from error
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield f"http://{_shown(host)}:{server.server_address[1]}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a page that is being made ends with the event loop

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no error of ours."""


class _Answer(NamedTuple):
    status: int
    kind: str
    body: bytes


async def _answer(app: Faena, path: str, accept: str) -> _Answer:
    if path == _SCALING:
        return await _scaling(app)
    page = await app.metrics(openmetrics="application/openmetrics-text" in accept)
    return _Answer(200, page.content_type, page.body)


async def _scaling(app: Faena) -> _Answer:
    """Without the broker nothing is known: an autoscaler then leaves things as they are."""
    try:
        status, told = 200, (await app.scaling()).to_dict()
    except StoreError as error:
        status, told = 503, {"problem": str(error)}
    return _Answer(status, "application/json", msgspec.json.encode(told) + b"\n")


def _handler(app: Faena, loop: asyncio.AbstractEventLoop) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _WITHIN_S

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path not in _PATHS:
                self.send_error(404, f"the page is at /metrics, for autoscalers at {_SCALING}")
                return
            making = _answer(app, path, self.headers.get("Accept", ""))
            asked = asyncio.run_coroutine_threadsafe(making, loop)
            try:
                answer = asked.result(2 * _WITHIN_S)
            except Exception:  # noqa: BLE001 - a scraper gets an answer
                _log.exception("an answer could not be made")
                self.send_error(500, "an answer could not be made")
                return
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the standard library's
            """Requests of a scraper are not worth a line each."""

    return Handler
