"""Serves the page of metrics over HTTP, for `faena metrics --serve`: for a scraper or two.

Requests are read in threads by the standard library's server; the page is made on the event loop,
which has the app's connection.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from faena.app import Faena
from faena.errors import ConfigError

_log = logging.getLogger("faena.cli")

_PATHS: Final = ("/metrics", "/")
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


def _handler(app: Faena, loop: asyncio.AbstractEventLoop) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _WITHIN_S

        def do_GET(self) -> None:
            if self.path.partition("?")[0] not in _PATHS:
                self.send_error(404, "the page is at /metrics")
                return
            openmetrics = "application/openmetrics-text" in self.headers.get("Accept", "")
            asked = asyncio.run_coroutine_threadsafe(app.metrics(openmetrics=openmetrics), loop)
            try:
                page = asked.result(2 * _WITHIN_S)
            except Exception:  # noqa: BLE001 - a scraper gets an answer
                _log.exception("the page of metrics could not be made")
                self.send_error(500, "the page could not be made")
                return
            self.send_response(200)
            self.send_header("Content-Type", page.content_type)
            self.send_header("Content-Length", str(len(page.body)))
            self.end_headers()
            self.wfile.write(page.body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the standard library's
            """Requests of a scraper are not worth a line each."""

    return Handler
