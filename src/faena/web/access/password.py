"""Passwords: hashed with argon2id, off the event loop."""

from __future__ import annotations

import asyncio
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from faena.errors import ArgumentError

_SHORTEST: Final = 10
_LONGEST: Final = 1_000

_hasher: Final = PasswordHasher()
"""OWASP's advice is less than the library's defaults: 64 MiB, three passes."""
_at_a_time: Final = 2
"""Each takes 64 MiB and some 50 ms of a core."""


class Passwords:
    """Verifies passwords, a few at a time, however many people try."""

    def __init__(self) -> None:
        self.room = asyncio.Semaphore(_at_a_time)
        """To be held while one is verified, and until its outcome is counted."""
        self._nobody = ""

    async def is_right(self, kept: str, password: str) -> bool:
        """Whether it is the password; takes as long if there is no such user (`kept` is empty)."""
        self._nobody = self._nobody or await hash_of("nobody")
        return await asyncio.to_thread(_verify, kept or self._nobody, password) and bool(kept)


def _verify(kept: str, password: str) -> bool:
    try:
        return _hasher.verify(kept, password[:_LONGEST])
    except (Argon2Error, InvalidHashError):
        return False


async def hash_of(password: str) -> str:
    """What is kept of it."""
    return await asyncio.to_thread(_hasher.hash, password)


def check_strength(password: str, name: str) -> None:
    """Refuse what is guessed soon."""
    if not _SHORTEST <= len(password) <= _LONGEST:
        raise ArgumentError(
            f"password must have {_SHORTEST} to {_LONGEST} characters, got {len(password)}",
            field="password",
        )
    if name.lower() in password.lower() or len(set(password)) < _SHORTEST // 2:
        raise ArgumentError(
            "password must not contain the user's name, nor repeat few characters",
            field="password",
        )
