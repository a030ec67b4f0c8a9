"""`python -m apps.campotech.api [--port 8000]`: serve the HTTP API of the installation that the
environment describes."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import sys
from typing import Final

import uvicorn

from apps.campotech.api.app import create
from apps.campotech.settings import Settings
from apps.campotech.setup import require_tables
from apps.campotech.system import System
from faena.errors import FaenaError

_LAST_PORT: Final = 65_535
_GRACE_S: Final = 10
_PING_S: Final = 20
_GIVE_UP_MS: Final = 60_000
_MOST_SAID: Final = 1024
"""Viewers of tracking send nothing."""


def main() -> int:
    """Serve until SIGTERM or Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m apps.campotech.api", description=__doc__)
    parser.add_argument(
        "--host", default="127.0.0.1", help="where it listens (default: %(default)s)"
    )
    parser.add_argument("--port", type=int, default=8000, help="default: %(default)s")
    given = parser.parse_args()
    if not 0 <= given.port <= _LAST_PORT:
        parser.error(f"--port must be 0 to {_LAST_PORT}, got {given.port}")
    return serve(host=given.host, port=given.port)


def serve(*, host: str = "127.0.0.1", port: int) -> int:
    """Serve on a port; 2 if the settings are wrong, tables are missing, or the port is taken."""
    try:
        asyncio.run(_serve(Settings.from_env(os.environ), host, port))
    except (ValueError, OSError, FaenaError) as error:
        print(f"campotech: {error}", file=sys.stderr)  # noqa: T201 - a program's last words
        return 2
    return 0


async def _serve(settings: Settings, host: str, port: int) -> None:
    # Uvicorn raises the signal again that has ended it, which must not end the process before the
    # system is closed.
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, lambda: None)
    async with System(settings) as system:
        await require_tables(system)
        config = uvicorn.Config(
            create(system),
            host=host,
            port=port,
            access_log=False,
            log_level="warning",
            timeout_graceful_shutdown=_GRACE_S,
            ws_max_size=_MOST_SAID,
            ws_ping_interval=_PING_S,
            ws_ping_timeout=_PING_S,
        )
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host, port), family=family) as listener:
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if hasattr(socket, "TCP_USER_TIMEOUT"):  # a peer that takes nothing holds no connection
                listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _GIVE_UP_MS)
            await uvicorn.Server(config).serve([listener])


if __name__ == "__main__":
    sys.exit(main())
