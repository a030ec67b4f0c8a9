"""Users and tokens, kept on the broker for all processes that serve the dashboard.

    user:ana.lopez     a person: hash of the password, role, tenant, whether payloads are shown
    token:DIGEST       a program: the same, with when it expires; the token itself is shown once

Changes compare with what their author has seen, so two owners do not undo each other's.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from typing import Final

import msgspec

from faena.engine import Engine
from faena.engine.calls.access import AccessCalls, AccountChanged, LastOwner
from faena.errors import ArgumentError, InvalidTransition, JobConflict, shown
from faena.values.names import check_label
from faena.values.view import View
from faena.web.access.caller import Caller
from faena.web.access.password import check_strength, hash_of
from faena.web.access.role import Role

_PREFIX: Final = "faena_"
_TOKEN_BYTES: Final = 32
_USER, _TOKEN = "user:", "token:"


class Account(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A user or a token as it is kept."""

    name: str
    role: Role
    tenant: str | None = None
    sees_payloads: bool = False
    password: str = ""
    """The argon2 hash; empty for tokens, and for users that come by another door."""
    made_at: int = 0
    """Microseconds since 1970."""
    made_by: str = ""
    expires_at: int = 0
    """0: never."""
    is_off: bool = False
    """Whether it was switched off: nobody gets in by it."""
    is_invited: bool = False
    """Whether the user has yet to set a password."""
    password_at: int = 0
    """When the password was last changed: sessions that began before are over."""

    def caller(self, via: str) -> Caller:
        """Who comes in by it."""
        return Caller(
            name=self.name,
            role=self.role,
            tenant=self.tenant,
            sees_payloads=self.sees_payloads,
            via=via,
        )


class AccountView(View, frozen=True, kw_only=True):
    """A user or a token, without secrets."""

    kind: str
    """user or token."""
    id: str
    """A user's name; a token's digest, cut."""
    name: str
    role: str
    tenant: str | None
    sees_payloads: bool
    made_at: int
    made_by: str
    expires_at: int
    is_off: bool
    is_invited: bool
    """Whether the user has yet to set a password."""


_pack = msgspec.msgpack.Encoder().encode
_read = msgspec.msgpack.Decoder(Account).decode


def digest_of(secret: str) -> str:
    """What is kept of a token, a session or a link: enough to know it again, not to make it."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Accounts:
    """The users and tokens of an app."""

    def __init__(self, engine: Engine) -> None:
        self._calls = AccessCalls(engine)

    async def list(self) -> list[AccountView]:
        """All, users before tokens, by name."""
        found = await self._calls.accounts()
        views = [_view(key, _read(packed)) for key, packed in found.items()]
        return sorted(views, key=lambda one: (one.kind != "user", one.name, one.id))

    async def user(self, name: str) -> Account | None:
        """A user; None if there is none."""
        packed = await self._calls.account(f"{_USER}{name}")
        return None if packed is None else _read(packed)

    async def token(self, token: str) -> Account | None:
        """The account of a token that was shown; None if there is none."""
        packed = await self._calls.account(f"{_TOKEN}{digest_of(token)}")
        return None if packed is None else _read(packed)

    async def add_user(self, account: Account, password: str) -> AccountView:
        """Make a user; refused if there is one of this name."""
        check_label("name", account.name)
        check_strength(password, account.name)
        kept = msgspec.structs.replace(account, password=await hash_of(password))
        await self._change(f"{_USER}{account.name}", b"", _pack(kept))
        return _view(f"{_USER}{account.name}", kept)

    async def add_invited(self, account: Account) -> AccountView:
        """Make a user who sets a password later; see Invitations."""
        check_label("name", account.name)
        kept = msgspec.structs.replace(account, is_invited=True)
        await self._change(f"{_USER}{account.name}", b"", _pack(kept))
        return _view(f"{_USER}{account.name}", kept)

    async def known_user(self, name: str) -> AccountView:
        """A user that is there; refused if there is none."""
        key = f"{_USER}{name}"
        return _view(key, (await self._found(key))[0])

    async def add_token(self, account: Account) -> tuple[AccountView, str]:
        """Make a token, and return it: this is the only time."""
        check_label("name", account.name)
        token = _PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)
        key = f"{_TOKEN}{digest_of(token)}"
        await self._change(key, b"", _pack(account))
        return _view(key, account), token

    async def change_user(self, name: str, **changes: object) -> AccountView:
        """Change some fields of a user; `password` is given in plain."""
        key = f"{_USER}{name}"
        kept, packed = await self._found(key)
        if "password" in changes:
            check_strength(str(changes["password"]), name)
            changes["password"] = await hash_of(str(changes["password"]))
            changes |= {"is_invited": False, "password_at": time.time_ns() // 1000}
        new = msgspec.structs.replace(kept, **changes)
        await self._change(key, packed, _pack(new))
        return _view(key, new)

    async def remove(self, kind: str, ident: str) -> AccountView:
        """Remove a user by name, or a token by the id that the list shows."""
        key = f"{_USER}{ident}" if kind == "user" else await self._token_key(ident)
        kept, packed = await self._found(key)
        await self._change(key, packed, b"")
        return _view(key, kept)

    async def _token_key(self, ident: str) -> str:
        found = await self._calls.accounts()
        keys = [key for key in found if key.startswith(f"{_TOKEN}{ident}")]
        if len(keys) != 1:
            raise ArgumentError(f"there must be one token {shown(ident)}", field="id")
        return keys[0]

    async def _found(self, key: str) -> tuple[Account, bytes]:
        packed = await self._calls.account(key)
        if packed is None:
            kind, _, name = key.partition(":")
            raise ArgumentError(f"there must be a {kind} {shown(name)}", field="name")
        return _read(packed), packed

    async def _change(self, key: str, expected: bytes, account: bytes) -> None:
        try:
            await self._calls.change_account(key, expected, account)
        except AccountChanged:
            words = "there is one already" if not expected else "it was changed meanwhile"
            kind, _, name = key.partition(":")
            raise JobConflict(f"{kind} {shown(name)} cannot be written: {words}") from None
        except LastOwner:
            raise InvalidTransition(
                "the last owner cannot be removed, switched off or given another role"
            ) from None


def _view(key: str, kept: Account) -> AccountView:
    kind, _, ident = key.partition(":")
    return AccountView(
        kind=kind,
        id=ident if kind == "user" else ident[:12],
        name=kept.name,
        role=kept.role.value,
        tenant=kept.tenant,
        sees_payloads=kept.sees_payloads,
        made_at=kept.made_at,
        made_by=kept.made_by,
        expires_at=kept.expires_at,
        is_off=kept.is_off,
        is_invited=kept.is_invited,
    )
