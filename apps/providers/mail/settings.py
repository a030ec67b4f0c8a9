"""Where mail is handed in, and from whom it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Self, get_args

from apps.providers.environment import LOOPBACK, given
from apps.providers.mail.letter import check_address, check_line

Security = Literal["starttls", "tls", "none"]

_NAMES: Final = {
    "host": "SMTP_HOST",
    "sender": "SMTP_FROM",
    "sender_name": "SMTP_FROM_NAME",
    "security": "SMTP_SECURITY",
    "user": "SMTP_USER",
    "password": "SMTP_PASSWORD",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One account at a mail server."""

    host: str
    sender: str
    """The address that mail is from."""
    sender_name: str = ""
    port: int = 587
    security: Security = "starttls"
    """`starttls` encrypts after the greeting, `tls` from the beginning (port 465), `none` never."""
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    timeout_s: float = 30.0
    """How long one mail may take in all."""

    def __post_init__(self) -> None:
        """Refuse what could not work, or would send the password in plain text."""
        check_address("sender", self.sender)
        check_line("sender_name", self.sender_name)
        if self.security not in get_args(Security):
            raise ValueError(f"security must be one of {', '.join(get_args(Security))}")
        if not self.host or not 0 < self.port < 65536:
            raise ValueError("host and port must be those of a mail server")
        if (self.user is None) != (self.password is None):
            raise ValueError("user and password must be given together")
        if not f"{self.user}{self.password}".isascii():
            raise ValueError("user and password must be ASCII")
        if self.user and self.security == "none" and self.host not in LOOPBACK:
            raise ValueError("security must not be none where there is a password")

    @property
    def domain(self) -> str:
        """Of the sender."""
        return self.sender.rpartition("@")[2]

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Read SMTP_HOST, SMTP_FROM, and what else is set of `_NAMES` and SMTP_PORT."""
        found = given(environ, _NAMES, needed=["host", "sender"])
        port = environ.get("SMTP_PORT")
        if port and not (port.isascii() and port.isdigit()):
            raise ValueError("SMTP_PORT must be a number")
        if port:
            found["port"] = int(port)
        return cls(**found)
