"""What may be done at the dashboard and through the admin API, and by which roles.

Whatever is not listed is refused: a route names the permission it needs, a role has permissions.
"""

from __future__ import annotations

from enum import Enum
from types import MappingProxyType
from typing import Final

from faena.errors import ConfigError, unknown_name


class Permission(Enum):
    """What a route can need."""

    VIEW = "view"
    """See queues, jobs, errors and figures, without payloads."""

    PAYLOAD = "payload"
    """See payloads, results, headers and log lines of jobs."""

    OPERATE = "operate"
    """What an operator on duty does: hold, release, cancel, rerun, retry, redrive, silence."""

    ADMINISTER = "administer"
    """What lasts or cannot be taken back: settings, tenants, schedules, discards, panics."""

    OWN = "own"
    """Who has access, and what removes a queue or a tenant's data."""


class Role(Enum):
    """What a user or a token is."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"
    OWNER = "owner"


PERMISSIONS: Final = MappingProxyType(
    {
        Role.VIEWER: frozenset({Permission.VIEW}),
        Role.OPERATOR: frozenset({Permission.VIEW, Permission.OPERATE}),
        Role.ADMIN: frozenset({Permission.VIEW, Permission.OPERATE, Permission.ADMINISTER}),
        Role.OWNER: frozenset(
            {Permission.VIEW, Permission.OPERATE, Permission.ADMINISTER, Permission.OWN}
        ),
    }
)
"""Without payloads: these are given to each user and token apart."""


def role_of(text: str) -> Role:
    """The role of a name; the error suggests the nearest one."""
    try:
        return Role(text)
    except ValueError:
        names = [role.value for role in Role]
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - of users' code
            raise ConfigError("role must be a text", field="role") from None
        raise unknown_name("role", text, names, value=text) from None
