"""Where Twilio is, and from whom messages are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from apps.providers.environment import check_address, given

_ACCOUNT: Final = re.compile(r"AC[0-9a-f]{32}")
_NAMES: Final = {
    "account_sid": "TWILIO_ACCOUNT_SID",
    "auth_token": "TWILIO_AUTH_TOKEN",
    "sender": "TWILIO_FROM",
    "messaging_service_sid": "TWILIO_MESSAGING_SERVICE_SID",
    "status_callback": "TWILIO_STATUS_CALLBACK",
    "base_url": "TWILIO_BASE_URL",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One account; messages are from a number or from a messaging service."""

    account_sid: str
    auth_token: str = field(repr=False)
    sender: str | None = None
    """A number of the account, such as +5491155550000."""
    messaging_service_sid: str | None = None
    status_callback: str | None = None
    """Where Twilio tells what becomes of messages; None: nowhere."""
    base_url: str = "https://api.twilio.com"
    timeout_s: float = 10.0
    """How long one request may take in all."""

    def __post_init__(self) -> None:
        """Refuse what could not work, or would send the token in plain text."""
        if not _ACCOUNT.fullmatch(self.account_sid):
            raise ValueError("account_sid must be AC and 32 hexadecimal digits")
        if not self.auth_token:
            raise ValueError("auth_token must not be empty")
        if (self.sender is None) == (self.messaging_service_sid is None):
            raise ValueError("one of sender and messaging_service_sid must be given")
        check_address("base_url", self.base_url)

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Read what is set of `_NAMES`."""
        return cls(**given(environ, _NAMES, needed=["account_sid", "auth_token"]))
