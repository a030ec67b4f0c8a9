"""Invitations: a link with which a person sets a password, once, within two days.

The broker keeps the digest of its secret. A link is void once the user has another password, or is
another user of the same name. It is used up before the password is set: should the
process die in between, an owner makes another link.
"""

from __future__ import annotations

import secrets
import time
from typing import Final

import msgspec

from faena.engine import Engine
from faena.engine.calls.access import AccessCalls
from faena.web.access.account import Accounts, digest_of
from faena.web.access.password import check_strength

_SECRET_BYTES: Final = 32
_LASTING_MS: Final = 2 * 86_400_000
_LONGEST: Final = 300


class Invited(msgspec.Struct, frozen=True):
    """Who a link is for."""

    name: str
    at: int
    """When it was made: microseconds since 1970."""


_pack = msgspec.msgpack.Encoder().encode
_read = msgspec.msgpack.Decoder(Invited).decode


class Invitations:
    """The invitations of an app's dashboard."""

    def __init__(self, engine: Engine, accounts: Accounts) -> None:
        self._calls = AccessCalls(engine)
        self._accounts = accounts

    async def make(self, name: str) -> str:
        """The secret of a link for a user that is there."""
        await self._accounts.known_user(name)
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        packed = _pack(Invited(name, time.time_ns() // 1000))
        await self._calls.keep_link(_digest(secret), packed, _LASTING_MS)
        return secret

    async def whose(self, secret: str) -> str | None:
        """Who is invited; None if the link was used, or is too old."""
        if not secret or len(secret) > _LONGEST:
            return None
        found = await self._calls.link(_digest(secret))
        if found is None:
            return None
        invited = _read(found)
        account = await self._accounts.user(invited.name)
        if account is None or invited.at < max(account.made_at, account.password_at):
            return None
        return invited.name

    async def accept(self, secret: str, password: str) -> str | None:
        """Set the password of who is invited; None if the link was used meanwhile."""
        name = await self.whose(secret)
        if name is None:
            return None
        check_strength(password, name)
        if await self._calls.take_link(_digest(secret)) is None:
            return None
        await self._accounts.change_user(name, password=password)
        return name


def _digest(secret: str) -> str:
    """Apart from links that let one in as they are."""
    return digest_of(f"invitation:{secret}")
