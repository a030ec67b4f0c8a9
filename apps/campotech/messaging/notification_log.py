"""Which notifications were sent: each is written down before it goes out, and once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from faena.pg import Connection, Postgres

Channel = Literal["whatsapp", "push", "sms", "email"]

QUEUED: Final = "queued"
SENDING: Final = "sending"
SENT: Final = "sent"
_TRIED: Final = (SENDING, "unknown")
_OPEN: Final = (QUEUED, *_TRIED)

# Rows are found by their ids in all partitions, and two that begin at once must not both write.
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%(id)s::text, 0))"
_FIND: Final = """
    SELECT channel, status, created_at FROM campotech.notification_logs WHERE id = %(id)s
"""
_NOTE: Final = """
    INSERT INTO campotech.notification_logs
        (id, organization_id, recipient, channel, kind, status)
    VALUES (%(id)s, %(organization)s, %(recipient)s, %(channel)s, %(kind)s, 'queued')
    RETURNING channel, status, created_at
"""
_CHANGE: Final = """
    UPDATE campotech.notification_logs SET status = %(status)s
    WHERE id = %(id)s AND created_at = %(at)s AND status IN ('queued', 'sending', 'unknown')
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A notification: of what, to whom, by which channel."""

    id: UUID
    organization: UUID
    recipient: str
    """The id of a customer or a user, never their address."""
    channel: Channel
    kind: str

    def values(self) -> dict[str, Any]:
        """For a statement."""
        return {
            "id": self.id,
            "organization": self.organization,
            "recipient": self.recipient,
            "channel": self.channel,
            "kind": self.kind,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A notification that is to be sent."""

    id: UUID
    channel: Channel
    at: datetime
    """When it was noted."""
    status: str

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do."""
        return self.status not in _OPEN

    @property
    def was_tried(self) -> bool:
        """Whether an earlier attempt may have sent it."""
        return self.status in _TRIED


async def note(connection: Connection, one: Note) -> Begun:
    """Write a notification down, unless it is known; as it is now."""
    values = one.values()
    await connection.execute(_LOCK, values)
    row = await (await connection.execute(_FIND, values)).fetchone()
    if row is None:
        row = await (await connection.execute(_NOTE, values)).fetchone()
    if row is None:
        raise RuntimeError("a notification must be written down")
    channel, status, at = row
    return Begun(id=one.id, channel=channel, status=status, at=at)


async def begin(pg: Postgres, one: Note) -> Begun:
    """The same before it is sent; as an earlier attempt has left it."""
    async with pg.transaction("notification") as connection:
        begun = await note(connection, one)
        if begun.status == QUEUED:
            await change(connection, begun, SENDING)
        return begun


async def end(pg: Postgres, begun: Begun, status: str) -> None:
    """What became of it."""
    async with pg.transaction("notification") as connection:
        await change(connection, begun, status)


async def change(connection: Connection, begun: Begun, status: str) -> bool:
    """The same, in a transaction of the caller's; False if it is over."""
    given = {"id": begun.id, "at": begun.at, "status": status}
    return (await connection.execute(_CHANGE, given)).rowcount == 1
