"""By which doors people and programs come in, as a program declares it."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from faena.errors import ConfigError, shown
from faena.options.fields import check_is, derive
from faena.values.keywords import known_fields
from faena.web.access.oidc import Oidc
from faena.web.access.role import Role, role_of

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

SEED_ROLES: Final[Mapping[str, str]] = {"owner": "owner", "admin": "admin", "member": "viewer"}
"""The roles of CampoTech's and Aurora's users, as their dashboards had them."""


@known_fields("proxy")
@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedProxy:
    """A proxy in front, which has asked people who they are and says so in headers."""

    networks: tuple[str, ...]
    """Where it sends from, such as `10.0.0.0/8`: the same headers from elsewhere are ignored."""

    user_header: str = "x-forwarded-user"
    """Who the user is."""

    role_header: str | None = "x-forwarded-role"
    """The name of a role; None: all have `role`."""

    tenant_header: str | None = None
    """The only tenant that the user may see; None: all may see all."""

    role: str = "viewer"
    """Of users without a role, or with one that is not known."""

    roles: Mapping[str, str] = field(default_factory=dict[str, str])
    """The proxy's names of roles → ours: `{"oncall": "operator"}`."""

    sees_payloads: bool = False
    """Whether its users see payloads."""

    parsed: tuple[Network, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_is("sees_payloads", self.sees_payloads, bool)
        role_of(self.role)
        for ours in self.roles.values():
            role_of(ours)
        if not self.networks:
            raise ConfigError("networks must name where the proxy sends from, got none")
        derive(self, "parsed", tuple(map(_network, self.networks)))

    def role_named(self, name: str | None) -> Role:
        """The role of a header."""
        named = self.roles.get(name or "", SEED_ROLES.get(name or "", name or ""))
        return Role(named) if named in {one.value for one in Role} else role_of(self.role)


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise ConfigError(
            f"networks must be addresses such as 10.0.0.0/8, got {shown(text)}", field="networks"
        ) from None


@known_fields("access")
@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The doors. Without any, the dashboard does not start."""

    users: bool = True
    """Whether people sign in with a password, as `faena users add` made them."""

    tokens: bool = True
    """Whether programs come in with a token, as `faena tokens add` made it."""

    proxy: TrustedProxy | None = None
    """A proxy that knows people already."""

    oidc: Oidc | None = None
    """A provider of identities that people sign in with."""

    link: bool = False
    """Whether a link that is printed at the start lets one person in: for development."""

    def __post_init__(self) -> None:
        for name in ("users", "tokens", "link"):
            check_is(name, getattr(self, name), bool)
        if not (self.users or self.tokens or self.proxy or self.oidc or self.link):
            raise ConfigError("access must leave one door open, got none", field="access")
