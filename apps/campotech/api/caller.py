"""Who calls: an organisation by its token, or an administrator by theirs."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final
from uuid import UUID

from fastapi import Depends, Request

from apps.campotech.api.problem import Problem
from apps.campotech.security import digest_of

if TYPE_CHECKING:
    from apps.campotech.system import System

_FIND: Final = "SELECT id, name FROM campotech.organizations WHERE token_digest = %s"
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class Organization:
    """Whose token was shown."""

    id: UUID
    name: str

    @property
    def tenant(self) -> str:
        """What its jobs are called by."""
        return str(self.id)

    def owns(self, organization: UUID) -> None:
        """Refuse what is another's."""
        if organization != self.id:
            raise Problem(403, "orgId must be that of the token")


def system_of(request: Request) -> System:
    """The CampoTech that serves the request."""
    system: System = request.app.state.system
    return system


async def organization(request: Request) -> Organization:
    """Who sends the request; 401 without a token that is known."""
    token = bearer(request)
    async with system_of(request).pg.transaction("token") as connection:
        row = await (await connection.execute(_FIND, [digest_of(token)])).fetchone()
    if row is None:
        raise _unknown()
    return Organization(*row)


def administrator(request: Request) -> None:
    """Refuse all but administrators."""
    expected = system_of(request).settings.admin_token
    if not expected or not hmac.compare_digest(bearer(request).encode(), expected.encode()):
        raise _unknown()


def bearer(request: Request) -> str:
    """The token of a request."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not token or len(token) > _LONGEST:
        raise _unknown()
    return token


def _unknown() -> Problem:
    return Problem(401, "a bearer token that is known is needed", www_authenticate="Bearer")


Caller = Annotated[Organization, Depends(organization)]
