"""Where a worker answers over HTTP."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from faena.errors import ConfigError, shown

VARIABLE: Final = "FAENA_SERVE"
OFF: Final = "off"
_PORT: Final = 3001
_LOOPBACK: Final = "127.0.0.1"
_FORM: Final = re.compile(
    r"(?:(?P<host>\[[0-9A-Fa-f:.%\w]+\]|[A-Za-z0-9][A-Za-z0-9._-]*)(?::(?P<port>\d{1,5}))?)"
)
_HIGHEST: Final = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeAddress:
    """A host and a port to listen on."""

    host: str = _LOOPBACK
    """Only this machine by default: metrics name queues and tenants, and nobody logs in."""

    port: int = _PORT
    """0: any that is free."""

    is_chosen: bool = False
    """Whether the port was given: it must be free then, the default one need not be."""

    @classmethod
    def parse(cls, text: Any) -> ServeAddress | None:
        """Read PORT, HOST or HOST:PORT; None for `off`."""
        if text == OFF:
            return None
        if not isinstance(text, str) or not (found := _read(text.strip())):
            raise ConfigError(
                f"serve must be a port, host:port or 'off', such as '3001', '0.0.0.0:3001' or "
                f"'[::1]:3001', got {shown(text)}",
                field="serve",
                value=text,
            )
        return found

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def _read(text: str) -> ServeAddress | None:
    if text.isascii() and text.isdigit():
        return _at(_LOOPBACK, text)
    form = _FORM.fullmatch(text)
    return _at(form["host"].strip("[]"), form["port"]) if form else None


def _at(host: str, port: str | None) -> ServeAddress | None:
    if port is None:
        return ServeAddress(host=host)
    number = int(port)
    return ServeAddress(host=host, port=number, is_chosen=True) if number <= _HIGHEST else None
