"""What settings of services have in common: variables of the environment, and safe addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


def given(
    environ: Mapping[str, str], names: Mapping[str, str], *, needed: Sequence[str]
) -> dict[str, Any]:
    """The fields that are set, by the names of their variables; those `needed` must be."""
    found = {field: environ[name] for field, name in names.items() if environ.get(name)}
    for field in needed:
        if field not in found:
            raise ValueError(f"{names[field]} must be set, got nothing")
    return found


def check_address(name: str, url: str) -> None:
    """Refuse an address to which a credential would travel in the clear."""
    parts = urlsplit(url)
    is_own = parts.scheme == "http" and parts.hostname in LOOPBACK
    if not parts.hostname or (parts.scheme != "https" and not is_own):
        raise ValueError(f"{name} must begin with https://, or be http:// on loopback")
