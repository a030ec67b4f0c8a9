"""Where the WhatsApp Cloud API is, and which number sends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self
from urllib.parse import urlsplit

BASE_URL: Final = "https://graph.facebook.com/v23.0"
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_DIGITS: Final = re.compile(r"\d{1,32}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One number of one app of Meta's; secrets do not show in its text."""

    access_token: str = field(repr=False)

    phone_number_id: str
    """The id of the number that sends, not the number itself."""

    app_secret: str = field(default="", repr=False)
    """What webhooks are signed with; without it none is accepted."""

    verify_token: str = field(default="", repr=False)
    """What Meta must say when it first asks the address of webhooks; our own choice."""

    base_url: str = BASE_URL
    """With the version."""

    timeout_s: float = 15.0
    """How long one request may take in all; a download may take four times as long."""

    media_hosts: tuple[str, ...] = ("fbsbx.com", "fbcdn.net", "facebook.com", "whatsapp.net")
    """Whose addresses, and those below them, may be asked for media with our token, by https."""

    most_media_bytes: int = 16 * 1024 * 1024
    """How large a download may be; WhatsApp lets audio and video have as much."""

    def __post_init__(self) -> None:
        """Refuse what could not work, and addresses to which a token would travel in clear."""
        if not self.access_token:
            raise ValueError("access_token must be given, got none")
        if not _DIGITS.fullmatch(self.phone_number_id):
            raise ValueError(f"phone_number_id must have digits only, got {self.phone_number_id!r}")
        parts = urlsplit(self.base_url)
        is_local = parts.scheme == "http" and parts.hostname in _LOOPBACK
        if not parts.hostname or not (parts.scheme == "https" or is_local):
            raise ValueError(f"base_url must be https, or http on loopback, got {self.base_url!r}")
        if self.timeout_s <= 0 or self.most_media_bytes <= 0:
            raise ValueError("timeout_s and most_media_bytes must be above 0")

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """`WHATSAPP_ACCESS_TOKEN`, `WHATSAPP_PHONE_NUMBER_ID`; `WHATSAPP_APP_SECRET`,
        `WHATSAPP_VERIFY_TOKEN`, `WHATSAPP_BASE_URL` if set."""
        for name in ("WHATSAPP_ACCESS_TOKEN", "WHATSAPP_PHONE_NUMBER_ID"):
            if not environ.get(name):
                raise ValueError(f"{name} must be set, got none")
        return cls(
            access_token=environ["WHATSAPP_ACCESS_TOKEN"],
            phone_number_id=environ["WHATSAPP_PHONE_NUMBER_ID"],
            app_secret=environ.get("WHATSAPP_APP_SECRET", ""),
            verify_token=environ.get("WHATSAPP_VERIFY_TOKEN", ""),
            base_url=environ.get("WHATSAPP_BASE_URL") or BASE_URL,
        )
