"""Sessions of people who have signed in, and links that let one person in once.

The cookie is a random secret; the broker keeps its digest, so all processes know it, and a reader
of the broker cannot use it. A session ends a while after its last request, at the latest after a
day, and at once when its user is switched off or removed.
"""

from __future__ import annotations

import secrets
import time
from typing import Final

import msgspec

from faena.engine import Engine
from faena.engine.calls.access import AccessCalls
from faena.web.access.account import Accounts, digest_of
from faena.web.access.caller import Caller
from faena.web.access.role import Role

_IDLE_S: Final = 8 * 3600
_LONGEST_S: Final = 24 * 3600
_TOUCH_S: Final = 300
"""How often a session that is used is written again."""
_LINK_S: Final = 600
_SECRET_BYTES: Final = 32


class Session(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session as it is kept."""

    name: str
    csrf: str
    began_at: float
    seen_at: float
    role: Role | None = None
    """Of one who came by another door than a password; None: the user's account says it."""
    tenant: str | None = None
    sees_payloads: bool = False
    via: str = "session"


class Known(msgspec.Struct, frozen=True):
    """Who a cookie belongs to, and what its forms must bring."""

    caller: Caller
    csrf: str


_pack = msgspec.msgpack.Encoder().encode
_read = msgspec.msgpack.Decoder(Session).decode


class Sessions:
    """The sessions of an app's dashboard."""

    def __init__(self, engine: Engine, accounts: Accounts) -> None:
        self._calls = AccessCalls(engine)
        self._accounts = accounts

    async def begin(self, caller: Caller) -> str:
        """Begin one: the secret for the cookie."""
        secret, now = secrets.token_urlsafe(_SECRET_BYTES), time.time()
        has_account = caller.via == "session"
        session = Session(
            name=caller.name,
            csrf=secrets.token_urlsafe(_SECRET_BYTES),
            began_at=now,
            seen_at=now,
            role=None if has_account else caller.role,
            tenant=caller.tenant,
            sees_payloads=caller.sees_payloads,
            via=caller.via,
        )
        await self._keep(digest_of(secret), session)
        return secret

    async def known(self, secret: str) -> Known | None:
        """Whose cookie this is; None if the session or its user is gone."""
        digest = digest_of(secret)
        packed = await self._calls.session(digest)
        if packed is None:
            return None
        session = _read(packed)
        caller = await self._caller(session)
        if caller is None:
            await self._calls.end_session(digest)
            return None
        now = time.time()
        if now - session.seen_at > _TOUCH_S:
            await self._keep(digest, msgspec.structs.replace(session, seen_at=now))
        return Known(caller, session.csrf)

    async def _caller(self, session: Session) -> Caller | None:
        if session.role is not None:
            return Caller(
                name=session.name,
                role=session.role,
                tenant=session.tenant,
                sees_payloads=session.sees_payloads,
                via=session.via,
            )
        account = await self._accounts.user(session.name)
        if account is None or account.is_off:
            return None
        if session.began_at * 1e6 < max(account.made_at, account.password_at):
            return None  # of a former password, or of a former user of this name
        return account.caller("session")

    async def end(self, secret: str) -> None:
        """End one."""
        await self._calls.end_session(digest_of(secret))

    async def _keep(self, digest: str, session: Session) -> None:
        left_s = min(_IDLE_S, session.began_at + _LONGEST_S - session.seen_at)
        await self._calls.keep_session(digest, _pack(session), max(1, round(left_s * 1000)))

    async def make_link(self, caller: Caller) -> str:
        """A secret that lets one person in, once, within ten minutes."""
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        await self._calls.keep_link(
            digest_of(secret), msgspec.msgpack.encode(caller), _LINK_S * 1000
        )
        return secret

    async def use_link(self, secret: str) -> Caller | None:
        """Who the link lets in; None if it was used, or is too old."""
        packed = await self._calls.take_link(digest_of(secret))
        return None if packed is None else msgspec.msgpack.decode(packed, type=Caller)
