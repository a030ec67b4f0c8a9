"""Messages against what became of them: ours that WhatsApp is silent about, and customers' that
nobody has dealt with.

WhatsApp cannot be asked about a message. What it has told is in the row already (`status.py`); a
message that nothing was told of within a day, when no attempt may send it any more, is marked
`unconfirmed`, and a status that comes later still counts. A customer's message whose job is gone is
handed to it again while the model may answer, else to a person.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from apps.campotech.messages.dispatched import WhatsAppRespond
from apps.campotech.messaging import conversation
from apps.campotech.messaging.conversation import Received
from apps.campotech.upkeep.comparison import Difference, Found, Part, Period, Position
from faena.errors import JobNotFound
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

PAGE: Final = 50
_SILENT: Final = timedelta(days=1)
"""After this, no attempt sends a message any more (see `sender.py`)."""
_ANSWERABLE: Final = timedelta(hours=23)
"""WhatsApp takes free texts for a day after the customer's last one."""
_PATIENCE: Final = "1h"
"""For this long a customer's message is its job's affair."""
_OVER: Final = frozenset({"completed", "dead", "cancelled"})
_SENT: Final = """
    SELECT id, created_at, organization_id, status FROM campotech.whatsapp_messages
    WHERE direction = 'outbound' AND status = ANY(%(states)s)
        AND created_at >= %(begin)s AND created_at < least(%(end)s, %(before)s)
        AND (created_at, id) > (%(after_at)s, %(after_id)s)
        AND coalesce(organization_id = %(org)s, true)
    ORDER BY created_at, id LIMIT %(most)s
"""
_RECEIVED: Final = _SENT.replace("'outbound'", "'inbound'")
_MARK: Final = """
    UPDATE campotech.whatsapp_messages SET status = 'unconfirmed'
    WHERE id = %s AND created_at = %s AND status IN ('sending', 'unknown')
"""


class Messages:
    """A comparison of messages."""

    def __init__(self, system: System) -> None:
        self._system, self._pg = system, system.pg
        self._patience = system.pace.of(_PATIENCE)

    async def read(self, period: Period, position: Position) -> Part:
        """Some of ours, then some of the customers'."""
        if position.get("phase") == "received":
            return await self._read_received(period, position)
        return await self._read_sent(period, position)

    async def _rows(
        self, query: str, period: Period, position: Position, before: datetime, states: list[str]
    ) -> list[tuple[Any, ...]]:
        after_at, after_id = position.get("after") or (period.begin.isoformat(), str(UUID(int=0)))
        given = {
            "states": states,
            "begin": period.begin,
            "end": period.end,
            "before": before,
            "after_at": datetime.fromisoformat(after_at),
            "after_id": UUID(after_id),
            "org": period.organization,
            "most": PAGE,
        }
        async with self._pg.transaction("reconciliation") as connection:
            return await (await connection.execute(query.encode(), given)).fetchall()

    # -- ours -------------------------------------------------------------------------------------

    async def _read_sent(self, period: Period, position: Position) -> Part:
        states = ["sending", "unknown", *(["sent"] if period.is_full else [])]
        rows = await self._rows(_SENT, period, position, period.now - _SILENT, states)
        if not rows:
            return Part(then={"phase": "received"})

        async def write(connection: Connection) -> Found:
            found = Found(looked_at=len(rows))
            for name, at, whose, status in rows:
                if status == "sent":
                    problem = "WhatsApp took the message and never said that it was delivered"
                elif (await connection.execute(_MARK, [name, at])).rowcount:
                    problem = "nobody knows whether the message was sent"
                else:  # a status has come meanwhile
                    continue
                said = Difference(problem=problem, subject=f"message {name}", organization=whose)
                found.differences.append(said)
            return found

        return Part(then=_after(rows, "sent"), write=write)

    # -- customers' -------------------------------------------------------------------------------

    async def _read_received(self, period: Period, position: Position) -> Part:
        before = period.now - self._patience
        rows = await self._rows(_RECEIVED, period, position, before, ["received"])
        if not rows:
            return Part(then=None)
        states = {name: await self._state(whose, name) for name, _, whose, _ in rows}

        async def write(connection: Connection) -> Found:
            found = Found(looked_at=len(rows))
            for name, _, whose, _ in rows:
                one = await conversation.find(connection, whose, name)
                if one is not None and one.is_open and states[name] != "live":
                    await self._hand_on(connection, period, one, states[name])
                    found.repaired += 1
            return found

        return Part(then=_after(rows, "received"), write=write)

    async def _state(self, organization: UUID, message: UUID) -> str:
        """Of its job: live, over, or unknown to the broker."""
        handle = self._system.answering.respond.handle(
            f"respond-{message.hex}", tenant=str(organization)
        )
        view = await handle.view()
        if view is not None:
            return "over" if view.state.value in _OVER else "live"
        try:
            flow = self._system.app.running_flow(f"voice.transcription/voice-{message.hex}")
            return "live" if await flow.state() == "running" else "over"
        except JobNotFound:
            return "unknown"

    async def _hand_on(
        self, connection: Connection, period: Period, one: Received, state: str
    ) -> None:
        is_young = period.now - one.created_at < _ANSWERABLE
        is_text = one.kind in ("text", "interactive") and bool(one.content) and one.can_be_answered
        if state != "unknown" or not is_young or not is_text or one.needs_person:
            await self._system.people.hand_over(connection, one)
            return
        asked = WhatsAppRespond(
            organization_id=str(one.organization_id),
            conversation_id=str(one.conversation_id),
            message_id=str(one.id),
        )
        await self._pg.outbox.enqueue(
            connection,
            self._system.answering.respond,
            asked,
            tenant=str(one.organization_id),
            id=f"respond-{one.id.hex}",
        )


def _after(rows: list[tuple[Any, ...]], phase: str) -> Position:
    name, at = rows[-1][:2]
    return {"phase": phase, "after": [at.isoformat(), str(name)]}
