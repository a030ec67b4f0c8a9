"""Tells the owners of an organisation what they must know, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal
from uuid import UUID

from apps.campotech.messages.dispatched import UserNotification
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

_OWNERS: Final = """
    SELECT id FROM campotech.users WHERE organization_id = %s AND role = 'owner' ORDER BY id
"""


async def tell_owners(
    system: System,
    connection: Connection,
    organization: UUID,
    said: tuple[str, str],
    *,
    data: Mapping[str, str] | None = None,
    by: Literal["push", "email"] = "push",
) -> int:
    """Title and text for each of them; how many there are. A push without a device is mailed."""
    title, body = said
    owners = await (await connection.execute(_OWNERS, [organization])).fetchall()
    task = system.delivery.push if by == "push" else system.delivery.email
    for (owner,) in owners:
        told = UserNotification(
            user_id=str(owner),
            title=title,
            body=body,
            data=dict(data or {}),
            organization_id=str(organization),
        )
        await system.pg.outbox.enqueue(connection, task, told, tenant=str(organization))
    return len(owners)
