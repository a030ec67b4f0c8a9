"""Takes in what customers write, say and send, each message once.

A text goes to the model, the figure that rates a job is noted, a recording is written down and
becomes a draft, a picture or a document waits for a person. A message that comes again finds
itself, and changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from apps.campotech.keys import key_of
from apps.campotech.messages import WhatsAppInbound
from apps.campotech.messages.dispatched import WhatsAppRespond
from apps.campotech.messaging import conversation
from apps.campotech.messaging.conversation import ANSWERED, FOR_PERSON, Received
from apps.campotech.messaging.rating import THANKS, take_rating
from apps.campotech.once import enqueue_once
from faena import Discard
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

_SEE: Final = """
    INSERT INTO campotech.whatsapp_seen (wa_message_id, message_id, organization_id)
    VALUES (%(wa)s, %(id)s, %(organization)s)
    ON CONFLICT (wa_message_id) DO NOTHING
    RETURNING created_at
"""
_SEEN_BY: Final = "SELECT organization_id FROM campotech.whatsapp_seen WHERE wa_message_id = %s"
_STORE: Final = """
    INSERT INTO campotech.whatsapp_messages (id, organization_id, conversation_id, direction,
        wa_message_id, kind, content, media_id, status, created_at)
    VALUES (%(id)s, %(organization)s, %(conversation)s, 'inbound', %(wa)s, %(kind)s, %(content)s,
        %(media)s, 'received', %(at)s)
"""


class Inbound:
    """The task `receive` of the queue `whatsapp.inbound`."""

    def __init__(self, system: System) -> None:
        self._system, self._pg = system, system.pg
        queue = system.queues["whatsapp.inbound"]
        self.receive = queue.task(name="receive")(self._receive)

    async def take(self, connection: Connection, message: WhatsAppInbound) -> bool:
        """Write down what a webhook has told, with the transaction; False if that waits already.

        In the outbox: WhatsApp tells it once, and a broker that crashes forgets its last seconds.
        """
        name, tenant = str(key_of(message)), str(message.org_id)
        _, is_written = await enqueue_once(
            self._system, connection, self.receive, message, tenant=tenant, id=name
        )
        return is_written

    async def _receive(self, message: WhatsAppInbound) -> str:
        """Our id of the message."""
        async with self._pg.transaction("inbound") as connection:
            one, is_new = await self._store(connection, message)
            if is_new:
                await self._pass_on(connection, one)
        # A flow is not part of the transaction. It has an id of its own, so each delivery may
        # start it, and the next one does if the process dies here.
        if _is_recording(one):
            await self._system.voice.start(one, message)
        return str(one.id)

    async def _store(
        self, connection: Connection, message: WhatsAppInbound
    ) -> tuple[Received, bool]:
        given: dict[str, Any] = {
            "id": conversation.message_id(message.wa_message_id),
            "wa": message.wa_message_id,
            "organization": message.org_id,
            "kind": message.message_type,
            "content": message.content and message.content.replace("\0", ""),
            "media": message.media_id,
        }
        new = await (await connection.execute(_SEE, given)).fetchone()
        if new is not None:
            phone = conversation.phone_of(message.sender_phone)
            talk = await conversation.begin(connection, message.org_id, phone)
            await connection.execute(_STORE, {**given, "conversation": talk, "at": new[0]})
        found = await conversation.find(connection, message.org_id, given["id"])
        if found is None:
            raise Discard(await _why_missing(connection, message))
        return found, new is not None

    async def _pass_on(self, connection: Connection, one: Received) -> None:
        if _is_recording(one):
            return
        if one.needs_person:  # the model is silent while somebody is asked to answer
            await conversation.settle(connection, one, FOR_PERSON)
            return
        if one.kind not in ("text", "interactive") or not one.content or not one.can_be_answered:
            await self._system.people.hand_over(connection, one)
            return
        if await take_rating(connection, one):
            await conversation.settle(connection, one, ANSWERED)
            await self._system.people.say(connection, one, THANKS, name="rating")
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


def _is_recording(one: Received) -> bool:
    return one.kind == "voice" and one.media_id is not None


async def _why_missing(connection: Connection, message: WhatsAppInbound) -> str:
    row = await (await connection.execute(_SEEN_BY, [message.wa_message_id])).fetchone()
    if row is not None and row[0] != message.org_id:
        return "a message must not be that of another organisation"
    return f"no organisation {message.org_id}, or the message is archived"
