"""Hands conversations to people: the customer is told once, and so are those who must answer.

A conversation needs a person from the first message that nobody else can answer until somebody has
taken care of it. Meanwhile the model is silent, and further messages are stored for that person.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import UUID

from apps.campotech.messages import WhatsAppOutbound
from apps.campotech.messages.dispatched import UserNotification
from apps.campotech.messaging import conversation
from apps.campotech.messaging.conversation import FOR_PERSON, Received
from faena import Discard, Escalation
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

HOLDING: Final = "Gracias por tu mensaje. Un representante te responderá en breve."
TITLE: Final = "WhatsApp necesita atención"
_NEEDS_PERSON: Final = """
    UPDATE campotech.conversations SET needs_person = true, updated_at = now()
    WHERE id = %s AND organization_id = %s AND NOT needs_person
"""
_TAKEN_CARE_OF: Final = """
    UPDATE campotech.conversations SET needs_person = false, updated_at = now()
    WHERE id = %s AND organization_id = %s AND needs_person
"""
_OWNERS: Final = """
    SELECT id FROM campotech.users WHERE organization_id = %s AND role = 'owner' ORDER BY id
"""


class People:
    """The task `attend` of the queue `job.notification`."""

    def __init__(self, system: System) -> None:
        self._system, self._pg = system, system.pg
        queue = system.queues["job.notification"]
        self.attend = queue.task(name="attend")(system.pg.effect(self._attend))

    async def _attend(self, transaction: Connection, escalation: Escalation) -> bool:
        """Whether anybody was told: not if the message is answered, or a person has it already."""
        organization, message = _about(escalation)
        found = await conversation.find(transaction, organization, message)
        if found is None:
            raise Discard(f"no message {message} in this organisation")
        return await self.hand_over(transaction, found)

    async def hand_over(self, connection: Connection, one: Received) -> bool:
        """Have a person deal with a message, and with what comes after it."""
        if not await conversation.settle(connection, one, FOR_PERSON):
            return False
        where = [one.conversation_id, one.organization_id]
        if not (await connection.execute(_NEEDS_PERSON, where)).rowcount:
            return False
        if one.can_be_answered:
            await self.say(connection, one, HOLDING, name="hold")
        await self._tell_owners(connection, one)
        return True

    async def say(self, connection: Connection, one: Received, text: str, *, name: str) -> None:
        """Answer a message; `name` and the message are the answer's own id."""
        said = WhatsAppOutbound(
            org_id=one.organization_id,
            idempotency_key=f"{name}-{one.id.hex}",
            created_at=datetime.now(UTC),
            message_type="text",
            recipient_phone=one.phone,
            customer_id=one.customer_id,
            text=text,
        )
        await self._pg.outbox.enqueue(
            connection,
            self._system.sender.send,
            said,
            tenant=str(one.organization_id),
            id=said.idempotency_key,
        )

    async def _tell_owners(self, connection: Connection, one: Received) -> None:
        owners = await connection.execute(_OWNERS, [one.organization_id])
        for (owner,) in await owners.fetchall():
            told = UserNotification(
                user_id=str(owner),
                title=TITLE,
                body=f"Mensaje de {one.phone} requiere respuesta manual",
                data={"conversationId": str(one.conversation_id)},
                organization_id=str(one.organization_id),
            )
            await self._pg.outbox.enqueue(
                connection, self._system.delivery.push, told, tenant=str(one.organization_id)
            )


async def take_care(connection: Connection, organization: UUID, conversation_id: UUID) -> bool:
    """A person has answered: the model may again. False if nobody was waited for."""
    made = await connection.execute(_TAKEN_CARE_OF, [conversation_id, organization])
    return made.rowcount == 1


def _about(escalation: Escalation) -> tuple[UUID, UUID]:
    """The organisation and the message of a job that could not be done; tenants come first."""
    payload = cast("dict[str, Any]", escalation.payload or {})
    organization = payload.get("organizationId") or payload.get("orgId")
    try:
        return UUID(escalation.tenant or organization), UUID(payload.get("messageId"))
    except (TypeError, ValueError):
        raise Discard(f"job {escalation.job_id} must name a message") from None
