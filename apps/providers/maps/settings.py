"""Where Google's maps are, and the key that pays for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from apps.providers.environment import check_address, given

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
        check_address("base_url", self.base_url)

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Read GOOGLE_MAPS_KEY, and what else of `_NAMES` is set."""
        return cls(**given(environ, _NAMES, needed=["key"]))
