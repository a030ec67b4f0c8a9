"""Access tokens of a service account: a signed claim is exchanged for one, which is used until it
is about to expire."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Callable
from typing import Annotated, Any, Final

import httpx
import msgspec
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from apps.providers.http import Exchange
from apps.providers.push.errors import Permanent, PushError, Retryable
from apps.providers.push.settings import Settings
from apps.providers.reading import typed

MOST_BYTES: Final = 2**18
"""Of an answer."""
SCOPE: Final = "https://www.googleapis.com/auth/firebase.messaging"
_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_LIFETIME_S: Final = 3600
_MARGIN_S: Final = 60
"""How long before its end a token is not used any more."""


class _Granted(msgspec.Struct):
    access_token: Annotated[str, msgspec.Meta(min_length=1, max_length=8192)]
    expires_in: Annotated[int, msgspec.Meta(ge=1, le=86_400)]


class TokenSource:
    """The token of one account; of callers that come at once, one asks and the others wait."""

    def __init__(
        self, settings: Settings, http: httpx.AsyncClient, now: Callable[[], float] = time.time
    ) -> None:
        self._settings, self._now = settings, now
        self._exchange = Exchange(
            "the token service", http, settings.timeout_s, MOST_BYTES, unsent=Retryable
        )
        self._asking = asyncio.Lock()
        self._token, self._ends_at = "", 0.0

    async def token(self) -> str:
        """One that is good for a minute at least."""
        async with self._asking:
            if self._now() >= self._ends_at - _MARGIN_S:
                granted = await self._grant()
                self._token = granted.access_token
                self._ends_at = self._now() + granted.expires_in
            return self._token

    def drop(self, token: str) -> None:
        """Forget a token that was refused, unless there is a new one already."""
        if token == self._token:
            self._ends_at = 0.0

    async def _grant(self) -> _Granted:
        url, now = self._settings.token_url, int(self._now())
        form = {"grant_type": _GRANT, "assertion": assertion(self._settings, now)}
        # Whatever happens to it, no message was sent.
        answer = await self._exchange.ask("POST", url, unclear=Retryable, data=form)
        if not answer.is_success:
            raise _refusal(answer.status)
        unreadable = Retryable("the token service's answer cannot be read")
        return typed(answer.body, _Granted, unreadable)


def assertion(settings: Settings, now: int) -> str:
    """The claim that the account's key signs."""
    header = {"alg": "RS256", "typ": "JWT", "kid": settings.private_key_id}
    claims = {
        "iss": settings.client_email,
        "scope": SCOPE,
        "aud": settings.token_url,
        "iat": now,
        "exp": now + _LIFETIME_S,
    }
    signed = f"{_encoded(header)}.{_encoded(claims)}"
    signature = _key(settings).sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{signed}.{_base64(signature)}"


def _key(settings: Settings) -> rsa.RSAPrivateKey:
    try:
        key = serialization.load_pem_private_key(settings.private_key.encode(), password=None)
    except (ValueError, TypeError):
        raise Permanent("the private key of the service account cannot be read") from None
    if not isinstance(key, rsa.RSAPrivateKey):
        raise Permanent("the private key of the service account must be one of RSA")
    return key


def _encoded(value: dict[str, Any]) -> str:
    return _base64(json.dumps(value, separators=(",", ":")).encode())


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _refusal(status: int) -> PushError:
    words = f"the token service answered with status {status}"
    is_permanent = 400 <= status < 500 and status not in (408, 429)
    return Permanent(words, code="invalid_grant") if is_permanent else Retryable(words)
