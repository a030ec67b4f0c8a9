"""Where OpenAI is, and as whom it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from apps.providers.environment import check_address, given

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
        check_address("base_url", self.base_url)

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Read OPENAI_API_KEY, and what else of `_NAMES` is set."""
        return cls(**given(environ, _NAMES, needed=["key"]))
