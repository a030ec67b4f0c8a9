"""Where OpenAI is, and as whom it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self
from urllib.parse import urlsplit

_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_NAMES: Final = {
    "key": "OPENAI_API_KEY",
    "base_url": "OPENAI_BASE_URL",
    "organization": "OPENAI_ORG_ID",
    "project": "OPENAI_PROJECT_ID",
    "chat_model": "OPENAI_CHAT_MODEL",
    "speech_model": "OPENAI_SPEECH_MODEL",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a client needs to know."""

    key: str = field(repr=False)
    base_url: str = "https://api.openai.com/v1"
    organization: str | None = None
    project: str | None = None
    chat_model: str = "gpt-4-turbo"
    """The model of calls that name none."""
    speech_model: str = "whisper-1"
    timeout_s: float = 60.0
    """How long one call may take."""

    def __post_init__(self) -> None:
        """A key travels encrypted, but on this machine."""
        parts = urlsplit(self.base_url)
        is_own = parts.scheme == "http" and parts.hostname in _LOOPBACK
        if parts.scheme != "https" and not is_own:
            raise ValueError("base_url must begin with https://, or be http:// on loopback")

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Read OPENAI_API_KEY, and what else of `_NAMES` is set."""
        given: dict[str, Any] = {
            field: environ[name] for field, name in _NAMES.items() if environ.get(name)
        }
        if "key" not in given:
            raise ValueError("OPENAI_API_KEY must be set, got nothing")
        return cls(**given)
