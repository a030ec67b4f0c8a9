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
_FIND: Final = "SELECT status, created_at FROM campotech.notification_logs WHERE id = %(id)s"
_NOTE: Final = """
    INSERT INTO campotech.notification_logs
        (id, organization_id, recipient, channel, kind, status)
    VALUES (%(id)s, %(organization)s, %(recipient)s, %(channel)s, %(kind)s, %(status)s)
    RETURNING status, created_at
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
    """A notification that is being sent."""

    id: UUID
    at: datetime
    """When it was noted."""
    status: str
    """As an earlier attempt has left it."""

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do."""
        return self.status not in _OPEN

    @property
    def was_tried(self) -> bool:
        """Whether an earlier attempt may have sent it."""
        return self.status in _TRIED


async def note(connection: Connection, one: Note) -> bool:
    """Write a notification down that another job sends; False if it is known."""
    values = one.values()
    await connection.execute(_LOCK, values)
    if await (await connection.execute(_FIND, values)).fetchone() is not None:
        return False
    await connection.execute(_NOTE, {**values, "status": QUEUED})
    return True


async def begin(pg: Postgres, one: Note) -> Begun:
    """Before it is sent: write it down, unless it is known."""
    async with pg.transaction("notification") as connection:
        values = {**one.values(), "status": SENDING}
        await connection.execute(_LOCK, values)
        row = await (await connection.execute(_FIND, values)).fetchone()
        before = QUEUED if row is None else str(row[0])
        if row is None:
            row = await (await connection.execute(_NOTE, values)).fetchone()
        if row is None:
            raise RuntimeError("a notification must be written down")
        begun = Begun(id=one.id, at=row[1], status=before)
        if before == QUEUED:
            await connection.execute(_CHANGE, {**values, "at": begun.at})
        return begun


async def end(pg: Postgres, begun: Begun, status: str) -> None:
    """What became of it."""
    async with pg.transaction("notification") as connection:
        await change(connection, begun, status)


async def change(connection: Connection, begun: Begun, status: str) -> bool:
    """The same, in a transaction of the caller's; False if it is over."""
    given = {"id": begun.id, "at": begun.at, "status": status}
    return (await connection.execute(_CHANGE, given)).rowcount == 1
