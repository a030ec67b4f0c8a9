"""Where AFIP is, and who asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Literal

from apps.providers.environment import check_address

Environment = Literal["production", "testing"]

_WSAA: Final = {
    "production": "https://wsaa.afip.gov.ar/ws/services/LoginCms",
    "testing": "https://wsaahomo.afip.gov.ar/ws/services/LoginCms",
}
_WSFE: Final = {
    "production": "https://servicios1.afip.gov.ar/wsfev1/service.asmx",
    "testing": "https://wswhomo.afip.gov.ar/wsfev1/service.asmx",
}
_GUARD_WINDOW: Final = {"production": timedelta(minutes=2), "testing": timedelta(minutes=10)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Addresses, times, and the certificate to use where no other source of them is given."""

    wsaa_url: str = _WSAA["production"]
    wsfe_url: str = _WSFE["production"]

    certificate_pem: bytes | None = field(default=None, repr=False)
    key_pem: bytes | None = field(default=None, repr=False)

    timeout: timedelta = timedelta(seconds=30)
    """How long one request may take."""

    guard_window: timedelta = _GUARD_WINDOW["production"]
    """How long WSAA gives no second ticket; AFIP may change it without notice."""

    ticket_margin: timedelta = timedelta(minutes=5)
    """How long before its end a ticket is no longer used."""

    def __post_init__(self) -> None:
        """Refuse addresses to which tickets would travel in the clear, and times that are none."""
        for name in ("wsaa_url", "wsfe_url"):
            check_address(name, getattr(self, name))
        if self.timeout <= timedelta(0):
            raise ValueError("timeout must be above zero")
        if min(self.guard_window, self.ticket_margin) < timedelta(0):
            raise ValueError("guard_window and ticket_margin must not be below zero")
        if (self.certificate_pem is None) != (self.key_pem is None):
            raise ValueError("certificate_pem and key_pem must be given together")

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Settings:
        """AFIP_ENVIRONMENT (production, testing), AFIP_WSAA_URL, AFIP_WSFE_URL, and in PEM
        AFIP_CERTIFICATE and AFIP_KEY."""
        environment = environ.get("AFIP_ENVIRONMENT", "production")
        if environment not in _WSAA:
            raise ValueError(f"AFIP_ENVIRONMENT must be production or testing, got {environment!r}")
        return cls(
            wsaa_url=environ.get("AFIP_WSAA_URL", _WSAA[environment]),
            wsfe_url=environ.get("AFIP_WSFE_URL", _WSFE[environment]),
            certificate_pem=_pem(environ.get("AFIP_CERTIFICATE")),
            key_pem=_pem(environ.get("AFIP_KEY")),
            guard_window=_GUARD_WINDOW[environment],
        )


def _pem(text: str | None) -> bytes | None:
    return text.encode() if text else None
