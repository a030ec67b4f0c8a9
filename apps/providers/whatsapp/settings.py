"""Where the WhatsApp Cloud API is, and which number sends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from apps.providers.environment import check_address, given

BASE_URL: Final = "https://graph.facebook.com/v23.0"
_NAMES: Final = {
    "access_token": "WHATSAPP_ACCESS_TOKEN",
    "phone_number_id": "WHATSAPP_PHONE_NUMBER_ID",
    "app_secret": "WHATSAPP_APP_SECRET",
    "verify_token": "WHATSAPP_VERIFY_TOKEN",
    "base_url": "WHATSAPP_BASE_URL",
}
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
        check_address("base_url", self.base_url)
        if self.timeout_s <= 0 or self.most_media_bytes <= 0:
            raise ValueError("timeout_s and most_media_bytes must be above 0")

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Read what is set of `_NAMES`; the token and the number must be."""
        return cls(**given(environ, _NAMES, needed=["access_token", "phone_number_id"]))
