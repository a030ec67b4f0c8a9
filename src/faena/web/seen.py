"""The dashboard's address as browsers see it, where a proxy in front changes it."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.types import Scope

from faena.errors import ConfigError
from faena.options.fields import check_is
from faena.web.access.oidc import check_address


class Seen(NamedTuple):
    """An address, in parts."""

    scheme: str
    host: str
    """With its port."""
    root: str | None
    """The path below which the dashboard is, empty at the top; None: where it is mounted."""

    def scope(self, scope: Scope) -> Scope:
        """A request as its browser has sent it."""
        own = scope.get("root_path", "")
        root = own if self.root is None else self.root
        path = scope["path"].removeprefix(own) if own else scope["path"]
        headers = [one for one in scope["headers"] if one[0] != b"host"]
        return {
            **scope,
            "scheme": self.scheme,
            "root_path": root,
            "path": f"{root}{path}",
            "headers": [*headers, (b"host", self.host.encode())],
        }


def seen_at(address: str | None) -> Seen | None:
    """The parts of an address; None where requests say what browsers see."""
    if address is None:
        return None
    check_is("address", address, str)
    parts = urlsplit(check_address("address", address))
    if not parts.netloc.isascii() or not parts.path.isascii():
        raise ConfigError("address must be written in ASCII", field="address", value=address)
    return Seen(parts.scheme, parts.netloc, parts.path.rstrip("/"))


def at_api(seen: Seen | None) -> Seen | None:
    """The same for the API alone, whose path is its own."""
    return None if seen is None else seen._replace(root=None)
