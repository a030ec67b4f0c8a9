"""Addresses of PostgreSQL: checked before any connection, and shown without users and passwords."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from faena.errors import ConfigError, shown

URL: Final = "FAENA_PG_URL"
DIRECT_URL: Final = "FAENA_PG_DIRECT_URL"
REPLICA_URL: Final = "FAENA_PG_REPLICA_URL"
_EXAMPLE: Final = "postgresql://user@host/database"
_SCHEMES: Final = ("postgresql://", "postgres://")
_ENVIRONMENT: Final = "FAENA_ENV"
_FOR_EMBEDDED: Final = ("development", "test")


def check_url(name: str, url: Any) -> str | None:
    """A URL that the driver can read; None if there is none."""
    if url is None:
        return None
    if not isinstance(url, str) or not url.startswith(_SCHEMES):
        raise _refused(name, url, f"must be a URL such as {_EXAMPLE}, got {_hint(url)}")
    try:
        conninfo_to_dict(url)
    except psycopg.ProgrammingError:  # its words repeat the password
        raise _refused(
            name,
            url,
            f"must be a URL that PostgreSQL can read, got {without_secrets(url)}: write special "
            f"characters of user and password as %25 for %, %40 for @, %2F for /",
        ) from None
    return url


def from_environ(name: str) -> str | None:
    """The URL of a variable; one that is empty counts as not set."""
    return check_url(name, os.environ.get(name) or None)


def without_secrets(url: Any) -> str:
    """A URL without user, password and options, which may have secrets; never other text of a
    string that is none."""
    if not isinstance(url, str):
        return shown(url)
    scheme, mark, rest = url.partition("://")
    if not mark:
        return shown(url) if url.isalnum() or not url else "text that is no URL"
    return shown(f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}")


def refuse_embedded(environ: Mapping[str, str]) -> None:
    """A program whose address is missing by mistake must not silently use a server of its own."""
    where = environ.get(_ENVIRONMENT, "").strip()
    if where and where not in _FOR_EMBEDDED:
        raise ConfigError(
            f"with {_ENVIRONMENT}={where} an app must have a PostgreSQL: set {URL} (an embedded "
            f"PostgreSQL needs {_ENVIRONMENT} unset, or one of {', '.join(_FOR_EMBEDDED)})",
            field=URL,
        )


def _hint(url: Any) -> str:
    told = without_secrets(url)
    is_driver = isinstance(url, str) and url.startswith(("postgresql+", "postgres+"))
    return f"{told}: write postgresql:// without a driver" if is_driver else told


def _refused(name: str, url: Any, words: str) -> ConfigError:
    return ConfigError(f"{name} {words}", field=name, value=without_secrets(url))
