"""Where Firebase is, and the service account that sends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

import msgspec

from apps.providers.environment import check_address
from apps.providers.reading import typed

_PROJECT: Final = re.compile(r"[a-z][a-z0-9-]{3,28}[a-z0-9]")
_ACCOUNT: Final = "FCM_SERVICE_ACCOUNT"
_BASE_URL: Final = "FCM_BASE_URL"
BASE_URL: Final = "https://fcm.googleapis.com"


class _Account(msgspec.Struct):
    """The file that Google gives for a service account."""

    project_id: str
    client_email: str
    private_key: str
    private_key_id: str
    token_uri: str = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One project and its service account."""

    project_id: str
    client_email: str
    private_key: str = field(repr=False)
    """In PEM."""
    private_key_id: str
    token_url: str = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address
    base_url: str = BASE_URL
    timeout_s: float = 10.0
    """How long a message may take, and a token before it if a new one is needed."""

    def __post_init__(self) -> None:
        """Refuse what could not work, or would send a token in plain text."""
        if not _PROJECT.fullmatch(self.project_id):
            raise ValueError("project_id must be 5 to 30 small letters, digits and hyphens")
        check_address("token_url", self.token_url)
        check_address("base_url", self.base_url)

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Read FCM_SERVICE_ACCOUNT, which is the JSON of a service account, and FCM_BASE_URL."""
        given = environ.get(_ACCOUNT)
        if not given:
            raise ValueError(f"{_ACCOUNT} must be set, got nothing")
        problem = ValueError(f"{_ACCOUNT} must be the JSON of a service account")
        account = typed(given, _Account, problem)
        return cls(
            project_id=account.project_id,
            client_email=account.client_email,
            private_key=account.private_key,
            private_key_id=account.private_key_id,
            token_url=account.token_uri,
            base_url=environ.get(_BASE_URL) or BASE_URL,
        )
