"""Opens the server of a worker at its address."""

from __future__ import annotations

import errno
import logging

from faena.errors import ConfigError
from faena.worker.serve.address import ServeAddress
from faena.worker.serve.endpoints import Endpoints
from faena.worker.serve.http_server import HttpServer

_log = logging.getLogger("faena.worker")


async def open_server(address: ServeAddress, endpoints: Endpoints) -> HttpServer | None:
    """A server that listens; None, with a warning, if the port was not chosen and cannot be had."""
    server = HttpServer(endpoints.answer)
    try:
        port = await server.open(address.host, address.port)
    except OSError as error:
        why = _reason(error)
        if address.is_chosen:
            raise ConfigError(
                f"serve must be an address to listen on, got {address}: {why}",
                field="serve",
                value=str(address),
            ) from error
        _log.warning(
            "cannot listen on %s: %s; this worker runs without /health and /metrics "
            "(--serve PORT chooses another port, --serve off none)",
            address,
            why,
        )
        return None
    _log.info("/health, /ready and /metrics are at http://%s", _at(address, port))
    return server


def _reason(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "another process has the port"
    return error.strerror or str(error)


def _at(address: ServeAddress, port: int) -> str:
    return str(ServeAddress(host=address.host, port=port))
