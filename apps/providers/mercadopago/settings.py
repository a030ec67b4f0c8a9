"""Where MercadoPago is, and who we are there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from apps.providers.environment import check_address, given

BASE_URL: Final = "https://api.mercadopago.com"
_NAMES: Final = {
    "access_token": "MP_ACCESS_TOKEN",
    "webhook_secret": "MP_WEBHOOK_SECRET",
    "base_url": "MP_BASE_URL",
    "alias": "MP_ALIAS",
    "cbu": "MP_CBU",
}
_CBU: Final = re.compile(r"\d{22}", re.ASCII)
_ALIAS: Final = re.compile(r"[A-Za-z0-9.-]{6,20}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One account of MercadoPago; secrets do not show in its text."""

    access_token: str = field(repr=False)
    """Of the account; begins with `APP_USR-`, or `TEST-` for test credentials."""

    webhook_secret: str = field(default="", repr=False)
    """The "secret signature" of the application; without it no notification is accepted."""

    base_url: str = BASE_URL

    timeout_s: float = 15.0
    """How long one request may take in all."""

    alias: str = ""
    """The alias of the bank account that manual payments go to, such as `campo.tech.mp`."""

    cbu: str = ""
    """The CBU or CVU of that account: 22 digits."""

    def __post_init__(self) -> None:
        """Refuse what could not work, and addresses to which a token would travel in clear."""
        if not self.access_token:
            raise ValueError("access_token must be given, got none")
        check_address("base_url", self.base_url)
        if self.timeout_s <= 0:
            raise ValueError(f"timeout_s must be above 0, got {self.timeout_s}")
        if self.cbu and not _CBU.fullmatch(self.cbu):
            raise ValueError(f"cbu must have 22 digits, got {len(self.cbu)} characters")
        if self.alias and not _ALIAS.fullmatch(self.alias):
            raise ValueError("alias must have 6 to 20 letters, digits, dots or hyphens")

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Read MP_ACCESS_TOKEN, and what else of `_NAMES` is set."""
        return cls(**given(environ, _NAMES, needed=["access_token"]))
