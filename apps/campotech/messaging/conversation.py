"""Messages of customers as they are stored, and who deals with each of them.

    received ──► answered     by the model
        └──────► for_person   by somebody of the organisation

The step away from `received` is made once, in the transaction that also writes down what follows.
So a message has one answer, or one person who was told of it, wherever a process dies.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import NAMESPACE_URL, UUID, uuid5

from psycopg.rows import class_row

from faena.pg import Connection

RECEIVED: Final = "received"
ANSWERED: Final = "answered"
FOR_PERSON: Final = "for_person"

_ARGENTINE: Final = re.compile(r"\+54[0-9]{10,11}")
_CUSTOMER: Final = """
    SELECT id FROM campotech.customers WHERE organization_id = %s AND phone = %s
    ORDER BY created_at, id LIMIT 1
"""
_CONVERSATION: Final = """
    INSERT INTO campotech.conversations (id, organization_id, phone, customer_id)
    VALUES (gen_random_uuid(), %s, %s, %s)
    ON CONFLICT (organization_id, phone) DO UPDATE SET updated_at = now(),
        customer_id = coalesce(conversations.customer_id, excluded.customer_id)
    RETURNING id
"""
_FIND: Final = """
    SELECT one.id, one.organization_id, one.conversation_id, one.kind, one.content, one.media_id,
        one.status, one.created_at, talk.phone, talk.customer_id, talk.needs_person,
        org.name AS organization_name, org.phone_number_id
    FROM campotech.whatsapp_messages one
    JOIN campotech.conversations talk
        ON talk.id = one.conversation_id AND talk.organization_id = one.organization_id
    JOIN campotech.organizations org ON org.id = one.organization_id
    WHERE one.id = %s AND one.organization_id = %s AND one.direction = 'inbound'
"""
_SETTLE: Final = """
    UPDATE campotech.whatsapp_messages SET status = %s
    WHERE id = %s AND created_at = %s AND status = 'received'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A message of a customer, with its conversation."""

    id: UUID
    organization_id: UUID
    conversation_id: UUID
    kind: str
    content: str | None
    media_id: str | None
    status: str
    created_at: datetime
    phone: str
    customer_id: UUID | None
    needs_person: bool
    organization_name: str
    phone_number_id: str | None

    @property
    def is_open(self) -> bool:
        """Whether nobody has dealt with it."""
        return self.status == RECEIVED

    @property
    def can_be_answered(self) -> bool:
        """Whether we may write to this number: to those of the country only."""
        return bool(_ARGENTINE.fullmatch(self.phone))


def message_id(wa_message_id: str) -> UUID:
    """Our id of a message of WhatsApp's: the same whenever it is delivered."""
    return uuid5(NAMESPACE_URL, f"whatsapp:{wa_message_id}")


def phone_of(sender: str) -> str:
    """A number as we write it: WhatsApp leaves the plus out."""
    return f"+{sender}" if sender.isascii() and sender.isdigit() else sender


async def begin(connection: Connection, organization: UUID, phone: str) -> UUID:
    """The conversation with a number, which may be a new one."""
    found = await connection.execute(_CUSTOMER, [organization, phone])
    customer = await found.fetchone()
    given: list[Any] = [organization, phone, customer and customer[0]]
    row = await (await connection.execute(_CONVERSATION, given)).fetchone()
    if row is None:
        raise RuntimeError("a conversation must have an id")
    return row[0]


async def find(connection: Connection, organization: UUID, message: UUID) -> Received | None:
    """A message of a customer, if it is one of this organisation."""
    async with connection.cursor(row_factory=class_row(Received)) as cursor:
        await cursor.execute(_FIND, [message, organization])
        return await cursor.fetchone()


async def settle(connection: Connection, one: Received, status: str) -> bool:
    """Say who deals with a message; False if that was said before."""
    made = await connection.execute(_SETTLE, [status, one.id, one.created_at])
    return made.rowcount == 1
