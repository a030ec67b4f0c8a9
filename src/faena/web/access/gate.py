"""Finds out who sends a request, and refuses those that another page has made a browser send."""

from __future__ import annotations

import hmac
import ipaddress
import time
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from starlette.requests import Request

from faena.engine.calls.access import AccessCalls
from faena.errors import ArgumentError
from faena.values.names import check_label
from faena.web.access.access import Access, TrustedProxy
from faena.web.access.account import Account, Accounts
from faena.web.access.caller import Caller
from faena.web.access.invitation import Invitations
from faena.web.access.oidc import Oidc
from faena.web.access.password import Passwords
from faena.web.access.session import Known, Sessions

if TYPE_CHECKING:
    from faena.engine import Engine
    from faena.web.access.provider import Provider

SECURE_COOKIE: Final = "__Host-faena"
PLAIN_COOKIE: Final = "faena-session"
"""Over plain HTTP, where browsers refuse the other one: on this machine, for development."""

_LONGEST_SECRET: Final = 300
_MOST_TRIES: Final = 10
_MOST_TRIES_FROM: Final = 50
_TRIES_S: Final = 900


class TooManyTries(Exception):
    """Somebody is guessing passwords."""


class Gate:
    """The doors of one app's dashboard."""

    def __init__(self, engine: Engine, access: Access) -> None:
        self.access = access
        self.accounts = Accounts(engine)
        self.sessions = Sessions(engine, self.accounts)
        self.invitations = Invitations(engine, self.accounts)
        self._calls = AccessCalls(engine)
        self.provider = None if access.oidc is None else _provider(access.oidc, self._calls)
        self._passwords = Passwords()

    async def known(self, request: Request) -> Known | None:
        """Who sends it; None for a stranger. A token has no forms, so nothing to forge."""
        token = _bearer(request)
        if token is not None:
            caller = await self._by_token(token)
            return None if caller is None else Known(caller, "")
        if self.access.proxy is not None:
            caller = _by_proxy(request, self.access.proxy)
            if caller is not None:
                return Known(caller, "")
        secret = request.cookies.get(cookie_name(request), "")
        if not secret or len(secret) > _LONGEST_SECRET:
            return None
        return await self.sessions.known(secret)

    async def _by_token(self, token: str) -> Caller | None:
        if not self.access.tokens:
            return None
        account = await self.accounts.token(token)
        if account is None or account.is_off or _is_over(account):
            return None
        return account.caller("token")

    async def sign_in(self, name: str, password: str, address: str) -> Caller | None:
        """Who has this password; None if nobody has, after as long a time."""
        if not self.access.users or not _is_label(name):
            return None
        async with self._passwords.room:  # those who come at once are counted one after another
            return await self._try(name, password, address)

    async def _try(self, name: str, password: str, address: str) -> Caller | None:
        if (
            await self._calls.tries(name) >= _MOST_TRIES
            or await self._calls.tries(f"from:{address}") >= _MOST_TRIES_FROM
        ):
            raise TooManyTries
        account = await self.accounts.user(name)
        kept = "" if account is None or account.is_off else account.password
        if await self._passwords.is_right(kept, password) and account is not None:
            await self._calls.forget_tries(name)
            return account.caller("session")
        for whose in (name, f"from:{address}"):
            await self._calls.count_try(whose, _TRIES_S * 1000)
        return None


def _provider(oidc: Oidc, calls: AccessCalls) -> Provider:
    from faena.web.access.provider import Provider  # noqa: PLC0415 - an extra

    return Provider(oidc, calls)


def is_forged(request: Request, known: Known, given: str) -> bool:
    """Whether a changing request may come from another page than ours.

    The browser says where it comes from; the token of the session, which only our pages have, must
    be there as well. Requests with a bearer token cannot be made by a browser on its own.
    """
    if known.caller.via == "token":
        return False
    if is_foreign(request):
        return True
    return bool(known.csrf) and not hmac.compare_digest(known.csrf.encode(), given.encode())


def is_foreign(request: Request) -> bool:
    """Whether a browser says, or does not deny, that another site sends this."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site != "same-origin"
    origin = request.headers.get("origin", "")
    try:
        return not origin or urlsplit(origin).netloc != request.headers.get("host", "")
    except ValueError:
        return True


def cookie_name(request: Request) -> str:
    """The name of the session's cookie."""
    return SECURE_COOKIE if request.url.scheme == "https" else PLAIN_COOKIE


def address_of(request: Request) -> str:
    """Where a request comes from."""
    return request.client.host if request.client is not None else "unknown"


def _bearer(request: Request) -> str | None:
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token if kind.lower() == "bearer" and len(token) <= _LONGEST_SECRET else None


def _by_proxy(request: Request, proxy: TrustedProxy) -> Caller | None:
    try:
        address = ipaddress.ip_address(address_of(request))
    except ValueError:
        return None
    name = request.headers.get(proxy.user_header, "")
    if not any(address in network for network in proxy.parsed) or not _is_label(name):
        return None
    role = request.headers.get(proxy.role_header) if proxy.role_header else None
    tenant = request.headers.get(proxy.tenant_header, "") if proxy.tenant_header else None
    if tenant is not None and not _is_label(tenant):
        return None
    return Caller(
        name=name,
        role=proxy.role_named(role),
        tenant=tenant,
        sees_payloads=proxy.sees_payloads,
        via="proxy",
    )


def _is_over(account: Account) -> bool:
    return 0 < account.expires_at <= time.time() * 1e6


def _is_label(text: str) -> bool:
    try:
        check_label("name", text)
    except ArgumentError:
        return False
    return True
