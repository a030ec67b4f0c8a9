"""Signing in with a provider of identities, by OpenID Connect: what a program declares of it."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import urlsplit

from faena.errors import ArgumentError, ConfigError, shown
from faena.options.fields import check_is
from faena.values.keywords import known_fields
from faena.values.names import check_label
from faena.web.access.caller import Caller
from faena.web.access.role import Role, role_of

_ALGORITHMS: Final = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
_ORDER: Final = (Role.OWNER, Role.ADMIN, Role.OPERATOR, Role.VIEWER)


class Denied(Exception):
    """The provider knows them, but they have no role here."""


class Refused(Exception):
    """What came back is not what a sign-in brings."""


class Away(Exception):
    """The provider does not answer."""


@known_fields("oidc")
@dataclass(frozen=True, slots=True, kw_only=True)
class Oidc:
    """A provider of identities. Whoever has none of the `roles` stays outside."""

    issuer: str
    """Its address, as its tokens have it: `https://id.example.com/realms/shop`."""

    client_id: str
    """The name of this program at the provider."""

    client_secret: str | None = field(default=None, repr=False)
    """None for a program that the provider knows as public."""

    roles: Mapping[str, str]
    """What the claim says → a role: `{"sre": "operator", "+5491155550100": "owner"}`."""

    role_claim: str = "groups"
    """Where the token says so, a text or a list of texts; dots lead inwards:
    `realm_access.roles`, `phone_number`."""

    user_claim: str = "email"
    """Who the user is, as the audit trail has it."""

    tenant_claim: str | None = None
    """The only tenant that the user may see; None: all may see all."""

    sees_payloads: bool = False
    """Whether its users see payloads."""

    scopes: tuple[str, ...] = ("openid", "profile", "email")

    algorithms: tuple[str, ...] = ("RS256", "ES256")
    """Of signatures. Others are refused, `none` always."""

    label: str = "SSO"
    """The provider's name, as the button has it."""

    def __post_init__(self) -> None:
        for name in ("issuer", "client_id", "label", "role_claim", "user_claim"):
            value = getattr(self, name)
            check_is(name, value, str)
            if not value:
                raise ConfigError(f"{name} must not be empty", field=name)
        check_address("issuer", self.issuer)
        check_is("sees_payloads", self.sees_payloads, bool)
        if not self.roles:
            raise ConfigError("roles must say who may come in, got none", field="roles")
        for ours in self.roles.values():
            role_of(ours)
        if not self.algorithms or not _ALGORITHMS.issuperset(self.algorithms):
            known = ", ".join(sorted(_ALGORITHMS))
            raise ConfigError(f"algorithms must be some of {known}", field="algorithms")
        if "openid" not in self.scopes:
            raise ConfigError("scopes must have openid", field="scopes")
        if find_spec("jwt") is None or find_spec("httpx") is None:
            raise ConfigError("oidc needs another package: pip install 'faena[oidc]'")

    def caller(self, claims: Mapping[str, Any]) -> Caller:
        """Who comes in with these claims, which were verified; raises Denied."""
        if self.user_claim == "email" and claims.get("email_verified") is False:
            raise Denied("the provider has not verified the address")
        tenant = None if self.tenant_claim is None else _label(claims, self.tenant_claim)
        return Caller(
            name=_label(claims, self.user_claim),
            role=self._role(_inside(claims, self.role_claim)),
            tenant=tenant,
            sees_payloads=self.sees_payloads,
            via="oidc",
        )

    def _role(self, told: Any) -> Role:
        names: list[Any] = told if isinstance(told, list) else [told]
        found = {
            Role(self.roles[one]) for one in names if isinstance(one, str) and one in self.roles
        }
        if not found:
            raise Denied("no role here belongs to this account")
        return next(role for role in _ORDER if role in found)


def check_address(name: str, text: Any) -> str:
    """Addresses are encrypted, but those of this machine."""
    parts = urlsplit(str(text))
    is_whole = bool(parts.hostname) and not parts.query and not parts.fragment
    if not is_whole or parts.username is not None:
        raise ConfigError(f"{name} must be an address, got {shown(text)}", field=name)
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_here(parts.hostname or "")):
        raise ConfigError(f"{name} must begin with https://, got {shown(text)}", field=name)
    return str(text)


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _inside(claims: Mapping[str, Any], path: str) -> Any:
    if path in claims:
        return claims[path]
    found: Any = claims
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _label(claims: Mapping[str, Any], path: str) -> str:
    found = _inside(claims, path)
    try:
        return check_label("name", found)
    except (ArgumentError, ConfigError):
        raise Denied(f"the provider says no usable {path}") from None
