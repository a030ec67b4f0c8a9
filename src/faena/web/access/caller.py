"""Who sends a request, and what they may do."""

from __future__ import annotations

import msgspec

from faena.web.access.role import PERMISSIONS, Permission, Role


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """A person or a program that is known."""

    name: str
    """As the audit trail and events have it."""
    role: Role
    tenant: str | None = None
    """The only tenant whose jobs are shown; None: all."""
    sees_payloads: bool = False
    via: str = "session"
    """session, token, proxy, oidc or link."""

    def may(self, permission: Permission) -> bool:
        """Whether a route that needs this is open to the caller."""
        if permission is Permission.PAYLOAD:
            return self.sees_payloads
        return permission in PERMISSIONS[self.role]
