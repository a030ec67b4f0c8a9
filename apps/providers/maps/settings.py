"""Where Google's maps are, and the key that pays for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self
from urllib.parse import urlsplit

_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_NAMES: Final = {
    "key": "GOOGLE_MAPS_KEY",
    "base_url": "GOOGLE_MAPS_BASE_URL",
    "language": "GOOGLE_MAPS_LANGUAGE",
    "region": "GOOGLE_MAPS_REGION",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a client needs to know."""

    key: str = field(repr=False)
    base_url: str = "https://maps.googleapis.com"
    language: str = "es-419"
    region: str = "ar"
    """Where an address without a country is looked for first."""
    timeout_s: float = 10.0
    """How long one request may take in all."""

    def __post_init__(self) -> None:
        """A key travels encrypted, but on this machine."""
        parts = urlsplit(self.base_url)
        is_own = parts.scheme == "http" and parts.hostname in _LOOPBACK
        if parts.scheme != "https" and not is_own:
            raise ValueError("base_url must begin with https://, or be http:// on loopback")

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Read GOOGLE_MAPS_KEY, and what else of `_NAMES` is set."""
        given: dict[str, Any] = {
            field: environ[name] for field, name in _NAMES.items() if environ.get(name)
        }
        if "key" not in given:
            raise ValueError("GOOGLE_MAPS_KEY must be set, got nothing")
        return cls(**given)
