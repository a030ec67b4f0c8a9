"""Speaks to a provider of identities: discovery, keys, and the exchange of a code.

The code flow with PKCE. What the browser brings back is taken for nothing but a code: who somebody
is, the provider's token says, which comes directly from it, signed, for this program and for this
one try to sign in.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

import httpx
import jwt
import msgspec

from faena.engine.calls.access import AccessCalls
from faena.errors import ConfigError
from faena.web.access.account import digest_of
from faena.web.access.caller import Caller
from faena.web.access.oidc import Away, Oidc, Refused, check_address

_TRY_MS: Final = 600_000
_FRESH_S: Final = 3_600.0
_AGAIN_S: Final = 10.0
"""Between two looks for a key that is not known: invented keys cost the provider little."""
_PATIENCE_S: Final = 10.0
_LARGEST: Final = 1_000_000
_LEEWAY_S: Final = 60
_ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_NEEDED: Final = ("exp", "iat", "iss", "aud", "sub")


class Try(msgspec.Struct, frozen=True):
    """One try to sign in, as it is kept until the browser comes back."""

    nonce: str
    verifier: str
    redirect: str
    back: str


class Provider:
    """One provider, for one app's dashboard."""

    def __init__(
        self, oidc: Oidc, calls: AccessCalls, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.oidc, self._calls, self._clock = oidc, calls, clock
        self._told: Mapping[str, Any] | None = None
        self._told_at = self._keys_at = float("-inf")
        self._keys: list[jwt.PyJWK] = []

    async def begin(self, redirect: str, back: str) -> tuple[str, str]:
        """Where the browser is sent, and the secret that it keeps until it comes back."""
        told = await self._discovered()
        state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
        kept = Try(secrets.token_urlsafe(24), verifier, redirect, back)
        await self._calls.keep_link(_digest(state), msgspec.msgpack.encode(kept), _TRY_MS)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
        query = {
            "response_type": "code",
            "client_id": self.oidc.client_id,
            "redirect_uri": redirect,
            "scope": " ".join(self.oidc.scopes),
            "state": state,
            "nonce": kept.nonce,
            "code_challenge": challenge.decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        where = str(told["authorization_endpoint"])
        return f"{where}{'&' if '?' in where else '?'}{urlencode(query)}", state

    async def finish(self, given: Mapping[str, str], kept: str) -> tuple[Caller, str]:
        """Who has come back with this address and this secret, and where to go on."""
        state = given.get("state", "")
        if not kept or not hmac.compare_digest(state.encode(), kept.encode()):
            raise Refused("this browser has not begun to sign in")
        packed = await self._calls.take_link(_digest(state))
        if packed is None:
            raise Refused("this sign-in was used already, or is too old")
        begun = msgspec.msgpack.decode(packed, type=Try)
        if given.get("iss", self.oidc.issuer) != self.oidc.issuer:
            raise Refused("another provider has answered")
        if "code" not in given:
            raise Refused("the provider has let nobody in")
        token = await self._exchanged(given["code"], begun)
        return self.oidc.caller(await self._verified(token, begun.nonce)), begun.back

    async def _exchanged(self, code: str, begun: Try) -> str:
        """The token for a code."""
        told = await self._discovered()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": begun.redirect,
            "code_verifier": begun.verifier,
            "client_id": self.oidc.client_id,
        }
        if self.oidc.client_secret is not None:
            form["client_secret"] = self.oidc.client_secret
        token = (await _asked("POST", told["token_endpoint"], form)).get("id_token")
        if not isinstance(token, str):
            raise Refused("the provider has sent no token")
        return token

    async def _verified(self, token: str, nonce: str) -> Mapping[str, Any]:
        """The claims of a token that is for us, for now, and for this try."""
        try:
            key = await self._key(jwt.get_unverified_header(token))
            claims: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=list(self.oidc.algorithms),
                audience=self.oidc.client_id,
                issuer=self.oidc.issuer,
                leeway=_LEEWAY_S,
                options={"require": list(_NEEDED)},
            )
        except jwt.PyJWTError:
            raise Refused("the provider's token is not valid") from None
        party = claims.get("azp")
        if party is None and isinstance(claims["aud"], list):
            party = self.oidc.client_id if len(claims["aud"]) == 1 else None
        elif party is None:
            party = self.oidc.client_id
        if party != self.oidc.client_id:
            raise Refused("the provider's token is for another program")
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
            raise Refused("the provider's token is of another sign-in")
        return claims

    async def _key(self, header: Mapping[str, Any]) -> jwt.PyJWK:
        """The key that a token names; keys are read again for one that is not known."""
        if header.get("alg") not in self.oidc.algorithms:
            raise Refused("the provider's token is not signed as agreed")
        found = self._known(header.get("kid"))
        if found is None and self._clock() - self._keys_at > _AGAIN_S:
            told = await self._discovered()
            try:
                keys = jwt.PyJWKSet.from_dict(await _asked("GET", told["jwks_uri"]))
            except jwt.PyJWTError:
                raise Refused("the provider has no usable key") from None
            self._keys, self._keys_at = keys.keys, self._clock()
            found = self._known(header.get("kid"))
        if found is None:
            raise Refused("the provider's token has a key that is not the provider's")
        return found

    def _known(self, kid: Any) -> jwt.PyJWK | None:
        signing = [one for one in self._keys if one.public_key_use in {None, "sig"}]
        if kid is None and len(signing) == 1:
            return signing[0]
        return next((one for one in signing if kid is not None and one.key_id == kid), None)

    async def _discovered(self) -> Mapping[str, Any]:
        """What the provider says of itself; it must be the one that was declared."""
        if self._told is None or self._clock() - self._told_at > _FRESH_S:
            issuer = self.oidc.issuer
            told = await _asked("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
            if told.get("issuer") != issuer:
                raise Refused("another provider answers at this address")
            try:
                for name in _ENDPOINTS:
                    check_address(name, str(told.get(name, "")).partition("?")[0])
            except ConfigError as error:
                raise Refused(str(error)) from None
            self._told, self._told_at = told, self._clock()
        return self._told


async def _asked(
    method: str, address: str, form: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """A JSON object of the provider: bounded in time and size, never from elsewhere."""
    body = b""
    try:
        async with (
            httpx.AsyncClient(timeout=_PATIENCE_S, follow_redirects=False) as client,
            client.stream(method, address, data=form) as answer,
        ):
            async for part in answer.aiter_bytes():
                body += part
                if len(body) > _LARGEST:
                    raise Refused("the provider's answer is too large")
            status = answer.status_code
    except httpx.HTTPError as error:
        raise Away(f"the provider does not answer: {type(error).__name__}") from None
    if status >= 500:
        raise Away(f"the provider answers with {status}")
    if status != 200:
        raise Refused("the provider has refused it")
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        raise Refused("the provider's answer makes no sense") from None


def _digest(state: str) -> str:
    """Apart from links and invitations."""
    return digest_of(f"oidc:{state}")
