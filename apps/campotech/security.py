"""Tokens of organisations, and private keys that are stored encrypted."""

from __future__ import annotations

import hashlib
import secrets
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

_PREFIX: Final = "ct_"
_LEAST_SECRET: Final = 32


def new_token() -> str:
    """A token for the programs of an organisation; only its digest is stored."""
    return _PREFIX + secrets.token_urlsafe(32)


def digest_of(token: str) -> bytes:
    """What is stored of a token: it is random, so a plain digest cannot be guessed back."""
    return hashlib.sha256(token.encode()).digest()


@dataclass(frozen=True, slots=True)
class Vault:
    """Encrypts private keys of organisations with the secrets of the system, the newest first."""

    secrets: tuple[str, ...] = field(repr=False)

    def __post_init__(self) -> None:
        """Refuse secrets that could be guessed."""
        if not self.secrets or min(map(len, self.secrets)) < _LEAST_SECRET:
            raise ValueError(f"a secret must have {_LEAST_SECRET} characters or more")

    def seal(self, whose: UUID, text: bytes) -> bytes:
        """Encrypt what belongs to one organisation."""
        return self._cipher(whose).encrypt(text)

    def open(self, whose: UUID, sealed: bytes) -> bytes:
        """Decrypt it; what was sealed for another organisation, or changed, is refused."""
        try:
            return self._cipher(whose).decrypt(sealed)
        except InvalidToken:
            raise ValueError(f"the key of organisation {whose} cannot be read") from None

    def _cipher(self, whose: UUID) -> MultiFernet:
        return _cipher(self.secrets, whose.bytes)


@dataclass(frozen=True, slots=True)
class Tickets:
    """Short texts that prove what was said to their holder a moment ago; nothing is stored."""

    secrets: tuple[str, ...] = field(repr=False)
    purpose: bytes
    """A ticket for one is none for another."""
    lifetime: timedelta

    def issue(self, content: bytes, *, at: datetime | None = None) -> str:
        """A ticket, of letters that any header takes."""
        instant = datetime.now(UTC) if at is None else at
        made = self._cipher().encrypt_at_time(content, int(instant.timestamp()))
        return made.decode().rstrip("=")

    def read(self, ticket: str) -> bytes:
        """What it says; ValueError for one that was not issued here, or is too old."""
        padded = ticket + "=" * (-len(ticket) % 4)
        try:
            return self._cipher().decrypt(padded.encode(), int(self.lifetime.total_seconds()))
        except InvalidToken:
            raise ValueError("the ticket is not valid, or its time is over") from None

    def _cipher(self) -> MultiFernet:
        return _cipher(self.secrets, self.purpose)


def _cipher(secrets: tuple[str, ...], purpose: bytes) -> MultiFernet:
    return MultiFernet([Fernet(_derived(secret, purpose)) for secret in secrets])


def _derived(secret: str, purpose: bytes) -> bytes:
    """A key for each organisation, so that a sealed text is of no use in another's row."""
    key = hashlib.sha256(secret.encode()).digest()
    made = hashlib.blake2b(purpose, key=key, digest_size=32)
    return urlsafe_b64encode(made.digest())
